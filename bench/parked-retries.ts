export const parkedRetries = { name: 'parked-retries', summary: '', run: async () => { throw new Error('x') } } as import('./workload.ts').Workload
