// Which commands come from operations, and what each has beside its operation.
import { Command } from 'commander'
import { operationOf, operations } from '../../operators/operations.ts'
import { alertShapes } from '../../operators/alerts/command.ts'
import { catalogueShapes } from '../../operators/catalogue/command.ts'
import { problemShapes } from '../../operators/problems/command.ts'
import { computationShapes } from '../../operators/audiences/command.ts'
import { deadLetterReplayShape, deadLetterShapes } from '../../operators/dead-letters/command.ts'
import {
  deleteUserCommand,
  resumeCommand,
  deletionShapes,
  suppressShape,
  unsuppressShape,
} from '../../operators/deletions/command.ts'
import { destinationShapes } from '../../operators/destinations/command.ts'
import { infrastructureShape } from '../../operators/infrastructure/command.ts'
import { tailShape } from '../../operators/live/command.ts'
import { planShapes } from '../../operators/plans/command.ts'
import { replayShape, replayShapes } from '../../operators/replay/command.ts'
import { skipCommand, settingsShapes } from '../../operators/settings/command.ts'
import { applyCommand } from '../../operators/settings/file-command.ts'
import { statisticsShapes } from '../../operators/statistics/command.ts'
import { whyCommand } from '../../operators/why/command.ts'
import { operationCommand, type CommandShape } from './operation-command.ts'

/** By operation. One that is not here needs nothing but what it says of itself. */
const shapes: Readonly<Record<string, CommandShape>> = {
  ...settingsShapes,
  ...destinationShapes,
  ...alertShapes,
  ...catalogueShapes,
  ...problemShapes,
  ...computationShapes,
  ...deletionShapes,
  ...deadLetterShapes,
  ...planShapes,
  ...replayShapes,
  ...statisticsShapes,
  createRegulation: suppressShape,
  startReplay: replayShape,
  showInfrastructure: infrastructureShape,
  tailSource: tailShape,
}

/** Commands that do more than one operation, or have a page of their own; by their words. */
const made: Readonly<Record<string, () => Command>> = {
  'delete-user': deleteUserCommand,
  'deletions resume': resumeCommand,
  'settings apply': applyCommand,
  'settings skip': skipCommand,
  unsuppress: () => operationCommand(operationOf('createRegulation'), unsuppressShape, 'unsuppress'),
  'dead-letters replay': () =>
    operationCommand(operationOf('startReplay'), deadLetterReplayShape, 'dead-letters replay'),
  why: whyCommand,
}

const commandOf = (words: string): Command => {
  const own = made[words]
  if (own) return own()
  const operation = operations.find(({ command }) => command === words)!
  return operationCommand(operation, shapes[operation.id])
}

/** Every command that an operation has, and those that do more than one; by their words. */
export const operationWords = (): string[] => [
  ...new Set([...operations.flatMap(({ command }) => command ?? []), ...Object.keys(made)]),
]

/** The command of this name, with its subcommands. */
export function namedCommand(name: string, description: string): Command {
  const words = operationWords().filter((each) => each.split(' ')[0] === name)
  if (words.length === 1 && words[0] === name) return commandOf(name)
  const group = new Command(name).description(description)
  for (const each of words) group.addCommand(commandOf(each))
  return group
}
