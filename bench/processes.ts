export const processes = { name: 'processes', summary: '', run: async () => { throw new Error('x') } } as import('./workload.ts').Workload
