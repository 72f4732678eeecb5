export const flood = { name: 'flood', summary: '', run: async () => { throw new Error('x') } } as import('./workload.ts').Workload
