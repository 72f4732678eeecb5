export const profile = { name: 'profile', summary: '', run: async () => { throw new Error('x') } } as import('./workload.ts').Workload
