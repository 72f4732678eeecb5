import { fork } from 'node:child_process'
import { rename, writeFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Options } from '../options.ts'
import type { Behaviour, DestinationPlan } from './destinations.ts'
import { tokenClient } from './token-endpoint.ts'
import type { GoesAway, Outage } from './outages.ts'
import { movingAddresses, movingHost } from './moving-host.ts'
import type { FromReceivers, SinceMove, ToReceivers } from './receiver-process.ts'

export interface Receivers {
  /** What forwarders need to know of them. */
  readonly env: Record<string, string>
  /** The file that gets a line for each request. */
  readonly file: string
  /** When the name of what moves led to another address, epoch ms. */
  readonly moves: readonly number[]
  urls(destination: DestinationPlan): string[]
  /** Signatures by any of these are right from now on. */
  setSecrets(destination: string, secrets: readonly string[]): void
  /** The destination that refuses everything takes everything from now on. */
  fix(): void
  /** What this destination's requests need beside its URLs. */
  wayTo(destination: DestinationPlan): { oauthTokenUrl?: string; oauthClientId?: string; proxy?: string }
  /** It goes away so; null: it comes back. */
  become(what: GoesAway, outage: Outage | null): void
  /** When a call was taken that needed it, epoch ms, as of half a second ago at most; -1 for never. */
  takenAt(what: GoesAway): number
  /** The name of what moves leads to its other address from now on, and the one of before fails. Resolves with the new one. */
  move(): Promise<string>
  /** As of half a second ago at most. */
  sinceMove(): SinceMove
  /** So far, and how many of them were not as they have to be. */
  counts(): { requests: number; wrong: number }
  /** Writes what is left to the file. */
  finish(): Promise<void>
  close(): Promise<void>
}

/**
 * Receivers are elsewhere. Here they share two cores with brokers of many threads each, and read requests up to 15 s late
 * where they have to wait their turn: what was judged then was how this machine times out.
 */
function comeFirst(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_ABOVE_NORMAL)
  } catch {
    // It is not allowed to everybody.
  }
}

/** Starts the process of the receivers, which keep what they write and need in `folder`. */
export async function startReceivers(
  { seed, patience }: Pick<Options, 'seed' | 'patience'>,
  folder: string,
): Promise<Receivers> {
  const [file, caFile, nameFile] = ['arrivals.txt', 'ca.pem', 'moving-name.txt'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  const child = fork(fileURLToPath(new URL('receiver-process.ts', import.meta.url)), [], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  comeFirst(child.pid!)
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const counts = { requests: 0, wrong: 0 }
  const nothingYet: SinceMove = { taken: 0, lastAtOld: null }
  let sinceMove = nothingYet
  let takenAt: Record<GoesAway, number> = { 'token endpoint': -1, proxy: -1 }
  const moves: number[] = []
  child.on('message', (message: FromReceivers) => {
    if (message.kind !== 'requests') return
    counts.requests = message.count
    counts.wrong = message.wrong
    sinceMove = message.sinceMove
    takenAt = message.takenAt
  })
  const send = (message: ToReceivers) => void child.send(message)
  const reported = <K extends FromReceivers['kind']>(kind: K) =>
    new Promise<Extract<FromReceivers, { kind: K }>>((resolve, reject) => {
      const onMessage = (message: FromReceivers) => {
        if (message.kind !== kind) return
        child.off('message', onMessage)
        resolve(message as Extract<FromReceivers, { kind: K }>)
      }
      child.on('message', onMessage)
      child.once('exit', () => reject(new Error('the receivers ended')))
    })
  const ready = reported('ready')
  send({ kind: 'begin', seed, patience, file })
  const { http, tls, resets, unasked, moving, tokens, proxy, ca } = await ready
  await writeFile(caFile, ca)
  /** Whoever looks the name up reads one or the other. */
  const leadTo = async (address: string) => {
    await writeFile(`${nameFile}.new`, address)
    await rename(`${nameFile}.new`, nameFile)
  }
  await leadTo(movingAddresses[0])
  const urlOf = (behaviour: Behaviour, path: string): string => {
    switch (behaviour) {
      // Nobody ever listens at port 1 (tcpmux).
      case 'closed':
        return `http://127.0.0.1:1${path}`
      case 'resets':
        return `http://127.0.0.1:${resets}${path}`
      case 'self-signed':
        return `https://127.0.0.1:${tls}${path}`
      // Loopback too, but not of the network that is allowed: if the guard failed, nothing would leave the machine.
      case 'forbidden':
        return `http://[::1]:${http}${path}`
      case 'unasked':
      case 'victim':
        return `https://127.0.0.1:${unasked}${path}`
      case 'moving':
        return `http://${movingHost}:${moving}${path}`
      default:
        return `http://127.0.0.1:${http}${path}`
    }
  }
  return {
    env: { WEBHOOK_CA_FILE: caFile, FAULTS_NAME_FILE: nameFile },
    ...{ file, moves },
    urls: ({ id, urls }) => urls.map((behaviour, url) => urlOf(behaviour, `/${id}/${url}`)),
    setSecrets: (destination, secrets) => send({ kind: 'secrets', destination, secrets: [...secrets] }),
    fix: () => send({ kind: 'fix' }),
    wayTo: ({ urls }) => ({
      ...(urls.includes('login') && {
        oauthTokenUrl: `http://127.0.0.1:${tokens}/token`,
        oauthClientId: tokenClient.id,
      }),
      ...(urls.includes('proxied') && { proxy: `http://127.0.0.1:${proxy}` }),
    }),
    become: (what, outage) => send({ kind: 'away', what, outage }),
    takenAt: (what) => takenAt[what],
    async move() {
      const address = movingAddresses[(moves.length + 1) % movingAddresses.length]!
      await leadTo(address)
      moves.push(Date.now())
      send({ kind: 'move', address })
      // What was told before knows nothing of it.
      sinceMove = nothingYet
      return address
    },
    sinceMove: () => sinceMove,
    counts: () => ({ ...counts }),
    async finish() {
      const done = reported('done')
      send({ kind: 'finish' })
      await done
    },
    async close() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

export const urlPathIndex = (path: string): { destination: string; url: number } => {
  const [, destination, url] = path.split('/')
  return { destination: destination!, url: Number(url) }
}
