import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Behaviour, DestinationPlan } from './destinations.ts'
import type { FromReceivers, ToReceivers } from './receiver-process.ts'

export interface Receivers {
  urls(destination: DestinationPlan): string[]
  /** Signatures by any of these are right from now on. */
  setSecrets(destination: string, secrets: readonly string[]): void
  /** The destination that refuses everything takes everything from now on. */
  fix(): void
  /** So far, and how many of them were not as they have to be. */
  counts(): { requests: number; wrong: number }
  /** Writes what is left to the file. */
  finish(): Promise<void>
  close(): Promise<void>
}

/** Starts the process of the receivers; `file` gets a line for each request. */
export async function startReceivers(seed: number, file: string): Promise<Receivers> {
  const child = fork(fileURLToPath(new URL('receiver-process.ts', import.meta.url)), [], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const counts = { requests: 0, wrong: 0 }
  child.on('message', (message: FromReceivers) => {
    if (message.kind !== 'requests') return
    counts.requests = message.count
    counts.wrong = message.wrong
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
  send({ kind: 'begin', seed, file })
  const { http, tls, resets } = await ready
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
      default:
        return `http://127.0.0.1:${http}${path}`
    }
  }
  return {
    urls: ({ id, urls }) => urls.map((behaviour, url) => urlOf(behaviour, `/${id}/${url}`)),
    setSecrets: (destination, secrets) => send({ kind: 'secrets', destination, secrets: [...secrets] }),
    fix: () => send({ kind: 'fix' }),
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
