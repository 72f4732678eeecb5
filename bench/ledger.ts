export const ledger = { name: 'ledger', summary: '', run: async () => { throw new Error('x') } } as import('./workload.ts').Workload
