import { setTimeout as delay } from 'node:timers/promises'
import { nthCall } from '../../calls.ts'
import { makeCertificate } from '../../certificate.ts'
import { Child } from '../../child.ts'
import { monotonicMs } from '../../measure/clock.ts'
import { watchCpu } from '../../measure/cpu.ts'
import { noVerdict } from '../../measure/drain.ts'
import { mean } from '../../measure/figures.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, measuredCore, otherCore } from '../../rig.ts'
import { atLeast, atMost, type Workload } from '../workload.ts'

/** Long enough that a thousand requests are in flight, each on a connection of its own. */
const delayMs = 100
const users = 50_000
/** The limits grow. */
const growMs = 15_000
/** Looked at after the restart. */
const watchedMs = 15_000
const lookMs = 250
/** Before the restart, what goes through is counted for as long. */
const beforeMs = 5_000

/** What two receivers have seen so far. */
interface Look {
  at: number
  handshakes: number
  resumed: number
  /** Requests at the one that is restarted, and at its neighbour. */
  requests: number
  beside: number
}

/**
 * A receiver that speaks TLS ends all its connections and forgets its sessions, as when it is restarted. A neighbour over
 * plain HTTP shows what the handshakes take from others.
 */
export const handshakes: Workload = {
  name: 'handshakes',
  summary: 'a TLS receiver of 100 ms restarts with all its connections open; beside it one that does not',
  sizes: { calls: 800_000 },
  quick: { calls: 400_000 },
  async run(servers, { calls }) {
    const certificate = await makeCertificate()
    const deployment = await deploy(servers, { WEBHOOK_CA_FILE: certificate.file })
    const receiver = startReceiver({ delayMs, certificate })
    const neighbour = startReceiver({ delayMs })
    const { port } = await receiver.reported('listening')
    const { port: besidePort } = await neighbour.reported('listening')
    await deployment.destination('secured', 'source-0', [`https://127.0.0.1:${port}/hook`])
    await deployment.destination('beside', 'source-1', [`http://127.0.0.1:${besidePort}/hook`])
    await deployment.produce(calls!, (index) => nthCall(index, users, `source-${index % 2}`), 'backlog')

    const look = async (): Promise<Look> => {
      const [own, others] = await Promise.all([receiver.ask({}, 'progress'), neighbour.ask({}, 'progress')])
      const { handshakes, resumed, count } = own as unknown as Record<string, number>
      return {
        ...{ at: monotonicMs(), handshakes: handshakes!, resumed: resumed!, requests: count! },
        beside: others.count!,
      }
    }
    const forwarder = new Child('forwarding.ts', { core: measuredCore, env: deployment.env })
    await forwarder.reported('ready')
    await delay(growMs)
    const before = await look()
    await delay(beforeMs)
    const looks = [await look()]
    const watch = await watchCpu({ measured: forwarder.pid, receiver: receiver.pid }, otherCore)
    receiver.send({ restart: true })
    while (looks.at(-1)!.at - looks[0]!.at < watchedMs) {
      await delay(lookMs)
      looks.push(await look())
    }
    const use = await watch.end()
    await Promise.all([forwarder.end(), receiver.end(), neighbour.end(), deployment.close()])

    const steady = rates(before, looks[0]!)
    const after = looks
      .slice(1)
      .map((each, index) => ({ ...rates(looks[index]!, each), at: each.at - looks[0]!.at }))
    const last = looks.at(-1)!
    const made = last.handshakes - looks[0]!.handshakes
    const recovered = after.find(({ requests }) => requests >= steady.requests * 0.9)?.at ?? Infinity
    const ofBeside = mean(after.slice(0, 4).map(({ beside }) => beside)) / steady.beside
    return {
      rows: [
        { what: 'before: requests to the receiver', unit: 'requests/s', value: Math.round(steady.requests) },
        { what: 'before: requests to its neighbour', unit: 'requests/s', value: Math.round(steady.beside) },
        { what: 'connections that it had opened till then', unit: 'handshakes', value: looks[0]!.handshakes },
        { what: 'of these with a session from before', unit: 'handshakes', value: looks[0]!.resumed },
        { what: 'after the restart', unit: 'handshakes', value: made },
        {
          what: 'of these with a session from before',
          unit: 'handshakes',
          value: last.resumed - looks[0]!.resumed,
        },
        {
          what: 'the most in a second',
          unit: 'handshakes/s',
          value: Math.round(Math.max(...after.map(({ handshakes }) => handshakes))),
        },
        { what: 'until it takes 90 % again', unit: 'ms', value: Math.round(recovered) },
      ],
      ratio: null,
      goal: null,
      goals: [
        atLeast('its neighbour in the first second after, of before', ofBeside, 0.5),
        atMost('until it takes 90 % again, s', recovered / 1_000, 3),
      ],
      verdict: noVerdict([use]),
      text: after
        .slice(0, 24)
        .map(
          (each) =>
            `  ${Math.round(each.at).toString().padStart(6)} ms: ${Math.round(each.requests).toString().padStart(6)} requests/s, beside ${Math.round(each.beside).toString().padStart(6)}, ${Math.round(each.handshakes).toString().padStart(5)} handshakes/s`,
        ),
      detail: { calls, before, looks },
    }
  },
}

function rates(from: Look, to: Look): { requests: number; beside: number; handshakes: number } {
  const seconds = (to.at - from.at) / 1_000
  return {
    requests: (to.requests - from.requests) / seconds,
    beside: (to.beside - from.beside) / seconds,
    handshakes: (to.handshakes - from.handshakes) / seconds,
  }
}
