import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { PostriderError } from '../../../src/errors.ts'
import { newSecret } from '../../../src/operators/settings/secrets.ts'
import { destinations, sideDestinations } from '../load/destinations.ts'
import { tokenClient } from '../load/token-endpoint.ts'
import type { Receivers } from '../load/receivers.ts'
import { tierSets, type Rig } from '../rig.ts'
import type { FaultKind } from './fault-kinds.ts'
import { type Fault, type FaultContext, type Injection, pause, recovered, seconds } from './fault.ts'

/** Receivers accept the signatures of this many past secrets: requests in flight may be signed by them. */
const secretsKept = 4
const maxPartitions = { calls: 12, tier: 6 }

/** Of each destination, the newest first. */
const secretsOf = new Map<string, string[]>()

/** Tries again while the settings cannot be written: the broker may just have come back. */
async function execute(rig: Rig, command: SettingsCommand): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await rig.execute(command)
      return
    } catch (error) {
      if (!(error instanceof PostriderError)) throw error
      // What could not be confirmed may have been taken all the same.
      if (error.code === 'conflict' && tries > 1) return
      if (!error.canRetry || tries === 5) throw error
    }
  }
}

const seal = (rig: Rig, text: string) => newSecret(text, rig.secrets)

/** Sources, and destinations with their first secrets. */
export async function createSettings(rig: Rig, receivers: Receivers): Promise<void> {
  for (const plan of [...destinations, ...sideDestinations]) {
    const { id, source, deliverTo, signed, maxInFlight, batch, order } = plan
    const way = receivers.wayTo(plan)
    if (!rig.settings.state.sources.has(source))
      await rig.execute({
        type: 'create_source',
        id: source,
        name: source,
        writeKey: `key-of-${source}`,
        enabled: true,
      })
    const secret = `secret-0-of-${id}`
    secretsOf.set(id, [secret])
    if (signed) receivers.setSecrets(id, [secret])
    await rig.execute({
      type: 'create_destination',
      id,
      name: id,
      sourceIds: [source],
      urls: receivers.urls(plan),
      headers: [],
      sharedSecret: signed ? seal(rig, secret) : null,
      ...(way.oauthTokenUrl && { login: { oauthClientSecret: seal(rig, tokenClient.secret) } }),
      options: { deliverTo, maxInFlight, batch, order, ...way },
      enabled: true,
    })
  }
}

async function rotate({ rig, receivers, random }: FaultContext): Promise<string> {
  const { id } = random.pick(destinations.filter(({ signed }) => signed))
  const known = secretsOf.get(id)!
  const secret = `secret-${Number(known[0]!.split('-')[1]) + 1}-of-${id}`
  const kept = [secret, ...known].slice(0, secretsKept)
  secretsOf.set(id, kept)
  receivers.setSecrets(id, kept)
  await pause(500)
  const { earlierSecret } = rig.settings.state.destinations.get(id)!
  await execute(rig, {
    type: 'update_destination',
    id,
    addSecret: seal(rig, secret),
    removeSecrets: earlierSecret ? [earlierSecret.fingerprint] : [],
  })
  return `${id} signs with another secret, beside the one before`
}

async function change({ rig, random }: FaultContext): Promise<string> {
  switch (random.pick(['name', 'header', 'enabled'])) {
    case 'name': {
      const { id } = random.pick(destinations)
      await execute(rig, { type: 'update_destination', id, name: `${id} ${random.between(0, 999)}` })
      return `${id} has another name`
    }
    case 'header': {
      const { id } = random.pick(destinations)
      const value = seal(rig, `v${random.between(0, 999)}`)
      await execute(rig, {
        type: 'update_destination',
        id,
        headers: [{ urlNumber: 1, name: 'X-Team', value }],
      })
      return `${id} has another header`
    }
    default: {
      const ms = seconds(random, 1, 5)
      const disabling = { from: Date.now(), to: Infinity }
      rig.disablings.push(disabling)
      await execute(rig, { type: 'disable_destination', id: 'toggled' })
      await pause(ms)
      await execute(rig, { type: 'enable_destination', id: 'toggled' })
      disabling.to = Date.now()
      return `toggled was disabled for ${(ms / 1_000).toFixed(1)} s`
    }
  }
}

async function addPartitions(context: FaultContext): Promise<Injection> {
  const { rig, random } = context
  const { calls, retry } = topicNames(rig.config.topicPrefix)
  const tiers = [...new Set(tierSets.flatMap((set) => set.split(',')))]
  const candidates = [calls, calls, ...tiers.map(retry)]
  for (const topic of random.shuffled(candidates)) {
    const now = (await rig.admin.fetchTopicOffsets(topic)).length
    if (now >= (topic === calls ? maxPartitions.calls : maxPartitions.tier)) continue
    await rig.admin.createPartitions({ topicPartitions: [{ topic, count: now + 1 }] })
    // Members look every ten seconds.
    await pause(12_000)
    await recovered(
      context,
      context.seats.filter((seat) => seat.pid !== null && !seat.busy),
      'a new partition',
      'infrastructure',
    )
    return `${topic} has ${now + 1} partitions`
  }
  return { notInjected: 'all topics have as many partitions as they shall' }
}

export const settingsFaults = {
  'settings-changed': { lock: 'infrastructure', inject: change },
  'secret-rotated': { lock: 'infrastructure', inject: rotate },
  'partitions-added': { lock: 'infrastructure', inject: addPartitions },
} satisfies Partial<Record<FaultKind, Fault>>
