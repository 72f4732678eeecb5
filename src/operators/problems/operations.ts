import { z } from 'zod'
import { isoOrNull } from '../../core/duration.ts'
import { isWell } from '../../core/statistics/health.ts'
import { RequestRefused } from '../check.ts'
import { Kept } from '../kept.ts'
import { operation, type Operation } from '../operation.ts'
import type { ConsoleServices } from '../services.ts'
import { healthSchema } from '../statistics/health-schema.ts'
import { urlTimesShape } from '../statistics/operations.ts'
import { urlStateOf, type Standing } from '../statistics/overview.ts'
import type { StatisticsStore } from '../statistics/series.ts'
import { problemInput } from './facts.ts'
import {
  causesOf,
  headlineOf,
  isSeenWhole,
  problemKinds,
  problemsOf,
  type Cause,
  type ShownProblem,
} from './problems.ts'

/** Of a destination's URLs that are not well. */
const maxProblemUrls = 2
/** Characters of a URL, and of what it answered. */
const maxShownText = 120

const troubledDestinationSchema = z
  .object({
    health: healthSchema,
    pause: z.object({ since: z.string(), until: z.string().nullable() }).nullable(),
    queued: z.number().int().describe('Attempts that wait for their turn in forwarders.'),
    urls: z
      .array(
        z.object({
          urlId: z.string(),
          url: z.string().describe(`Its first ${maxShownText} characters.`),
          gone: z.boolean(),
          goneAt: z.string().nullable(),
          pausedUntil: z.string().nullable(),
          ...urlTimesShape,
          lastFailure: z
            .object({ at: z.string(), outcome: z.string(), detail: z.string().nullable() })
            .nullable(),
        }),
      )
      .max(maxProblemUrls)
      .describe('Those that are not well, the first ones.'),
    urlsOmitted: z.number().int(),
  })
  .meta({ id: 'TroubledDestination' })

export const problemSchema = z
  .object({
    id: z.string().describe('The same as long as it is the same problem.'),
    kind: z.enum(problemKinds),
    cause: z.string().describe('The same for problems that have one cause.'),
    isUrgent: z.boolean(),
    title: z.string(),
    text: z.string(),
    destinationId: z.string().nullable(),
    destinationName: z.string().nullable(),
    sourceId: z.string().nullable(),
    subject: z.string().nullable().describe('What it is about besides, such as the id of a deletion.'),
    since: z.string().nullable().describe('Since when it has been as it is; null where that is not known.'),
    size: z.number().int().nullable().describe('How many it is about, where it counts something.'),
    seen: z
      .object({ by: z.string(), at: z.string() })
      .nullable()
      .describe('Who has seen it as it is. Ends when it changes, or grows.'),
    destination: troubledDestinationSchema
      .nullable()
      .describe('How the destination is, where the problem is that: its kind is `destination` or `slow`.'),
  })
  .meta({ id: 'Problem' })

const maxCauses = 16

export const causeSchema = z
  .object({
    id: z.string().describe('As its problems name it.'),
    title: z.string(),
    text: z.string(),
    isUrgent: z.boolean(),
    destinations: z.number().int().describe('How many destinations it is about.'),
    problems: z.number().int().describe('How many problems it is of.'),
    isSeen: z.boolean().describe('Somebody has seen each of its problems.'),
    size: z.number().int().nullable().describe('How many its problems count together.'),
    waits: z
      .number()
      .int()
      .nullable()
      .describe(
        'Calls for its destinations that wait in retry tiers; null where that is not counted, or not what it is about.',
      ),
    since: z
      .string()
      .nullable()
      .describe(
        'Of the first of its problems, but of dead letters the newest; null where that is not known.',
      ),
    first: problemSchema.describe('One of its problems: the only one, or the first that nobody has seen.'),
  })
  .meta({ id: 'Cause' })

export const problemsSchema = z
  .object({
    headline: z.string().describe('“All well” where nothing is below, and every part is seen to run.'),
    isWell: z.boolean(),
    causes: z
      .array(causeSchema)
      .max(maxCauses)
      .describe('The problems by their causes: what nobody has seen first, and of that the worst.'),
    causesOmitted: z.number().int(),
    problems: z.array(problemSchema).describe('The worst first; no more than were asked for.'),
    omitted: z.number().int(),
  })
  .meta({ id: 'Problems' })

const maxListed = 500

interface Listed {
  cause?: string | undefined
  kind?: (typeof problemKinds)[number][] | undefined
  limit: number
}

const kept = new Kept<{ all: ShownProblem[]; causes: Cause[] }>()

async function viewOf(
  services: ConsoleServices,
  { cause, kind, limit }: Listed,
): Promise<z.output<typeof problemsSchema>> {
  const { input, standingOf } = await problemInput(services, kind)
  const store = await services.statistics()
  const looked = { nameOf: input.nameOf, standingOf, store }
  const of = { by: store, of: services.settings.state, about: String(kind), now: input.now }
  const { all, causes: every } = kept.get(of, () => {
    const all = problemsOf(input).filter((problem) => kind?.includes(problem.kind) ?? true)
    return { all, causes: causesOf(all, input.waiting) }
  })
  const isKnown = input.ageMs !== null
  const causes = every.filter(({ id }) => cause === undefined || id === cause)
  const listed = cause === undefined ? all : (causes[0]?.problems ?? [])
  const view = (problem: ShownProblem) => problemView(problem, looked)
  return {
    headline: headlineOf(all, isKnown),
    isWell: isKnown && all.length === 0,
    causes: causes.slice(0, maxCauses).map((each) => causeView(each, view)),
    causesOmitted: Math.max(0, causes.length - maxCauses),
    problems: listed.slice(0, limit).map(view),
    omitted: Math.max(0, listed.length - limit),
  }
}

const causeView = (cause: Cause, view: (problem: ShownProblem) => z.output<typeof problemSchema>) => ({
  ...cause,
  problems: cause.problems.length,
  isSeen: isSeenWhole(cause),
  since: isoOrNull(cause.since),
  first: view(cause.problems[0]!),
})

/** Where what is shown beside a problem is looked up. */
interface Looked {
  nameOf(id: string): string
  standingOf(id: string): Standing | undefined
  store: StatisticsStore
}

function problemView(
  { since, seen, ...problem }: ShownProblem,
  { nameOf, standingOf, store }: Looked,
): z.output<typeof problemSchema> {
  const { kind, destinationId } = problem
  const isOfDestination = kind === 'destination' || kind === 'slow'
  const standing = isOfDestination ? standingOf(destinationId!) : undefined
  return {
    ...problem,
    destinationName: destinationId === null ? null : nameOf(destinationId),
    since: isoOrNull(since),
    seen: seen && { by: seen.by, at: new Date(seen.at).toISOString() },
    destination: standing ? troubledView(standing, store) : null,
  }
}

function troubledView(
  standing: Standing,
  store: StatisticsStore,
): z.output<typeof troubledDestinationSchema> {
  const { destination, health, live } = standing
  const { pause, urls } = destination
  const unwell = urls.filter(({ id }) => !isWell(health.ofUrl(id)))
  return {
    health: health.all,
    pause: pause && { since: isoOrNull(pause.since)!, until: isoOrNull(pause.until) },
    queued: [...live.values()].reduce((sum, { queued }) => sum + queued, 0),
    urls: unwell.slice(0, maxProblemUrls).map((url) => {
      const { urlId, gone, goneAt, pausedUntil, downSince, lastSuccessAt, withoutToken, lastFailure } =
        urlStateOf(standing, url, store)
      return {
        ...{ urlId, url: cut(url.url), gone, goneAt, pausedUntil, downSince, lastSuccessAt },
        withoutToken: withoutToken && {
          ...withoutToken,
          detail: withoutToken.detail && cut(withoutToken.detail),
        },
        lastFailure: lastFailure && {
          at: lastFailure.at,
          outcome: lastFailure.outcome,
          detail: lastFailure.detail && cut(lastFailure.detail),
        },
      }
    }),
    urlsOmitted: Math.max(0, unwell.length - maxProblemUrls),
  }
}

const cut = (text: string): string => (text.length > maxShownText ? `${text.slice(0, maxShownText)}…` : text)

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
    query: z.strictObject({
      cause: z.string().optional().describe('Only problems that have this cause.'),
      kind: z
        .array(z.enum(problemKinds))
        .max(problemKinds.length)
        .optional()
        .describe('Only problems of these kinds: the headline, too, says nothing of others.'),
      limit: z.number().int().min(0).max(maxListed).default(50).describe('How many are listed.'),
    }),
    success: { status: 200, description: 'What there is now.', schema: problemsSchema },
    async handle({ query }, services) {
      return { status: 200, body: await viewOf(services, query) }
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
      const { input, standingOf } = await problemInput(services)
      const problem = problemsOf(input).find((each) => each.id === id)
      if (!problem)
        throw new RequestRefused(
          'not_found',
          `there is no problem ${JSON.stringify(id)} now; it may have ended`,
        )
      const at = services.now()
      await services.settings.perform({
        ...{ type: 'acknowledge_problem', id, at, by: caller.name, size: problem.size },
      })
      const seen = { ...problem, seen: { by: caller.name, at } }
      const looked = { nameOf: input.nameOf, standingOf, store: await services.statistics() }
      return { status: 200, body: problemView(seen, looked) }
    },
  }),
]
