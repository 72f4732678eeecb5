import { z } from 'zod'
import { isoOrNull } from '../../core/duration.ts'
import { RequestRefused } from '../check.ts'
import { operation, type Operation } from '../operation.ts'
import type { ConsoleServices } from '../services.ts'
import { problemInput } from './facts.ts'
import { headlineOf, problemKinds, problemsOf, type ShownProblem } from './problems.ts'

export const problemSchema = z
  .object({
    id: z.string().describe('The same as long as it is the same problem.'),
    kind: z.enum(problemKinds),
    isUrgent: z.boolean(),
    title: z.string(),
    text: z.string(),
    destinationId: z.string().nullable(),
    sourceId: z.string().nullable(),
    subject: z.string().nullable().describe('What it is about besides, such as the id of a deletion.'),
    since: z.string().nullable().describe('Since when it has been as it is; null where that is not known.'),
    size: z.number().int().nullable().describe('How many it is about, where it counts something.'),
    seen: z
      .object({ by: z.string(), at: z.string() })
      .nullable()
      .describe('Who has seen it as it is. Ends when it changes, or grows.'),
  })
  .meta({ id: 'Problem' })

export const problemsSchema = z
  .object({
    headline: z.string().describe('“All well” where nothing is below, and every part is seen to run.'),
    isWell: z.boolean(),
    problems: z.array(problemSchema).describe('The worst first; the first 500.'),
    omitted: z.number().int(),
  })
  .meta({ id: 'Problems' })

const maxListed = 500

async function viewOf(services: ConsoleServices): Promise<z.output<typeof problemsSchema>> {
  const input = await problemInput(services)
  const all = problemsOf(input)
  const isKnown = input.ageMs !== null
  return {
    headline: headlineOf(all, isKnown),
    isWell: isKnown && all.length === 0,
    problems: all.slice(0, maxListed).map(problemView),
    omitted: Math.max(0, all.length - maxListed),
  }
}

const problemView = ({ since, seen, ...problem }: ShownProblem): z.output<typeof problemSchema> => ({
  ...problem,
  since: isoOrNull(since),
  seen: seen && { by: seen.by, at: new Date(seen.at).toISOString() },
})

export const problemOperations: Operation[] = [
  operation({
    id: 'listProblems',
    route: 'GET /problems',
    command: 'problems list',
    role: 'reader',
    forLimited: 'part',
    summary: 'What needs somebody, the worst first',
    description:
      'Made from what is known now: a problem ends when what it is about ends. One that was acknowledged stays in the list, ' +
      'with who has seen it.',
    success: { status: 200, description: 'What there is now.', schema: problemsSchema },
    async handle(_, services) {
      return { status: 200, body: await viewOf(services) }
    },
  }),
  operation({
    id: 'acknowledgeProblem',
    route: 'POST /problems/{id}/acknowledge',
    command: 'problems acknowledge',
    role: 'operator',
    forLimited: 'nothing',
    summary: 'Say that somebody has seen it: it needs nobody until it changes',
    params: z.object({ id: z.string().describe('Its id, as the list has it.') }),
    success: { status: 200, description: 'The problem, seen.', schema: problemSchema },
    async handle({ params: { id }, caller }, services) {
      const problem = problemsOf(await problemInput(services)).find((each) => each.id === id)
      if (!problem)
        throw new RequestRefused(
          'not_found',
          `there is no problem ${JSON.stringify(id)} now; it may have ended`,
        )
      const at = services.now()
      await services.settings.perform({
        ...{ type: 'acknowledge_problem', id, at, by: caller.name, size: problem.size },
      })
      return { status: 200, body: problemView({ ...problem, seen: { by: caller.name, at } }) }
    },
  }),
]
