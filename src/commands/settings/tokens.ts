import { Command, Option } from 'commander'
import { hashOfToken, newToken, tokenKind, type TokenView } from '../../console/tokens.ts'
import { settingIn } from '../../console/setting-kind.ts'
import { roles, type Role } from '../../core/access/roles.ts'
import type { AccessToken } from '../../core/access/tokens.ts'
import { runAction } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { print, printJson } from '../output.ts'
import { addIdCommand, addListCommand, report, type ListedSetting } from './settings-actions.ts'
import { withSettings } from './with-settings.ts'

const tokens: ListedSetting<AccessToken, TokenView> = {
  ...tokenKind,
  none: 'no tokens but ADMIN_TOKEN',
  headings: ['NAME', 'ROLE', 'CREATED', 'REVOKED'],
  row: ({ id, role, createdAt, revokedAt }) => [id, role, createdAt, revokedAt ?? '-'],
}

export function tokensCommand(): Command {
  const command = new Command('tokens').description(
    'Tokens of the admin API, beside ADMIN_TOKEN. A reader sees everything but the contents of calls; an operator ' +
      'sees those too, sends tests and replays; an admin changes settings and tokens, and deletes. What is done with ' +
      'a token has its name in `postrider settings history`.',
  )
  command
    .command('create')
    .summary('add a token, and print it once')
    .description(
      'Adds a token and prints it. It is shown this once: only its SHA-256 is kept. A name is never reused.',
    )
    .requiredOption('--name <name>', '1-64 of a-z, 0-9, "_" and "-"')
    .addOption(new Option('--role <role>', 'what it may do').choices(roles).makeOptionMandatory())
    .option('--json', 'as JSON')
    .action(runAction(create))
  addListCommand(command, tokens)
  addIdCommand(
    command,
    'revoke',
    {
      summary: 'refuse it from now on',
      description: 'Refuses it from now on. It cannot be used again: create another one.',
    },
    async (id, flags, self) => {
      await withSettings(self, async (settings) => {
        await settings.execute({ type: 'revoke_token', id, at: Date.now() })
        report(tokens, settings, id, flags, `token "${id}" is revoked`)
      })
    },
  )
  return command
}

interface CreateFlags extends JsonFlag {
  name: string
  role: Role
}

async function create({ name: id, role, json }: CreateFlags, command: Command): Promise<void> {
  const token = newToken()
  await withSettings(command, async (settings) => {
    const hash = hashOfToken(token)
    const state = await settings.execute({ type: 'create_token', id, role, hash, at: Date.now() })
    if (json) printJson({ ...tokenKind.view(settingIn(tokenKind, state, id)), token })
    else print(`token "${id}" created, with the role ${role}; it is shown this once: ${token}`)
  })
}
