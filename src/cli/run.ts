import { Command } from 'commander'
import { runAction, settingOption } from './context.ts'
import { partMakers, runParts, type PartName } from './run-parts.ts'
import { usageError } from './flags.ts'

const known = Object.keys(partMakers).join(', ')

const descriptions: Record<PartName, string> = {
  collector:
    'Takes calls over HTTP (POST /v1/batch and the other routes of the tracking API) until SIGTERM: requests in flight ' +
    'are answered first. A call is acknowledged once Kafka has it. Start it as often as you like, behind any load ' +
    'balancer: each drops repeats of what it took itself.',
  forwarder:
    'Delivers calls to webhooks until SIGTERM: what is in flight is finished and committed first. Start it as often as ' +
    'you like, on one machine or on many: the processes share the partitions of one consumer group (GROUP_ID).',
  console:
    'Serves the web console and the admin API until SIGTERM: requests in flight are finished first. It needs ' +
    'ADMIN_TOKEN, with which people log in and every request of the API comes, and speaks plain HTTP: run it behind a ' +
    'TLS-terminating proxy. It listens for this machine only, unless CONSOLE_HOST is set. Several can run at once. The ' +
    'page is at /, a description of the API at /api/v1/openapi.json.',
}

/** The command that runs one part. */
export function partCommand(name: PartName): Command {
  const command = new Command(name).description(descriptions[name])
  if (name === 'collector') command.addOption(settingOption('COLLECTOR_PORT'))
  if (name === 'console') command.addOption(settingOption('CONSOLE_PORT'))
  return command
    .addOption(settingOption('METRICS_PORT'))
    .addOption(settingOption('GROUP_ID'))
    .action(runAction((_flags: unknown, self: Command) => runParts([name], self)))
}

export function runCommand(): Command {
  return new Command('run')
    .description(
      'Runs several parts in one process until SIGTERM, with one log and one /metrics. They start in the order given ' +
        `and stop in the reverse one. Parts: ${known}.`,
    )
    .argument('<part...>', `one or several of: ${known}`)
    .addOption(settingOption('METRICS_PORT'))
    .addOption(settingOption('GROUP_ID'))
    .action(
      runAction((parts: string[], _flags: unknown, command: Command) => {
        checkParts(parts)
        return runParts(parts, command)
      }),
    )
}

function checkParts(parts: readonly string[]): asserts parts is PartName[] {
  const unknown = parts.filter((name) => !Object.hasOwn(partMakers, name))
  if (unknown.length > 0)
    throw usageError(
      `there is no part ${unknown.map((name) => JSON.stringify(name)).join(' or ')}; there is: ${known}`,
    )
  const twice = parts.find((name, at) => parts.indexOf(name) !== at)
  if (twice !== undefined)
    throw usageError(
      `${twice} is named twice; for more of one part, start more processes (\`postrider ${twice}\`)`,
    )
}
