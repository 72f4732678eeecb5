import { operation, type Operation } from '../operation.ts'
import { infrastructureSchema } from './infrastructure.ts'

export const infrastructureOperations: Operation[] = [
  operation({
    id: 'showInfrastructure',
    route: 'GET /infrastructure',
    command: 'infrastructure',
    role: 'reader',
    forLimited: 'nothing',
    summary: 'Kafka, the schema registry and the topics: whether they answer, and what is wrong with them',
    success: { status: 200, description: 'Their state now.', schema: infrastructureSchema },
    async handle(_, { infrastructure }) {
      return { status: 200, body: await infrastructure.show() }
    },
  }),
]
