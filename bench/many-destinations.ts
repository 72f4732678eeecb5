export const manyDestinations = { name: 'many-destinations', summary: '', run: async () => { throw new Error('x') } } as import('./workload.ts').Workload
