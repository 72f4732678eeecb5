export const isolation = { name: 'isolation', summary: '', run: async () => { throw new Error('x') } } as import('./workload.ts').Workload
