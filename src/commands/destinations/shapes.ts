// What the commands of destinations have beside their operations.
import type { Command } from 'commander'
import { tagOf } from '../../console/api/tags.ts'
import { destinationKind, type DestinationView, type sampleView } from '../../console/destinations.ts'
import { settingIn } from '../../console/setting-kind.ts'
import { repeatable, usageError } from '../flags.ts'
import { table } from '../output.ts'
import type { CommandShape } from '../operations/operation-command.ts'
import type { CommandSession } from '../operations/session.ts'
import { headings, pageOf, rowOf } from './describe.ts'
import {
  addRotationFlags,
  addSecretFlags,
  givenHeaders,
  givenSecrets,
  type EndpointFlags,
  type GivenHeader,
} from './flags.ts'

interface UrlFlags extends EndpointFlags {
  url?: string[]
}

const urlFlag = () => repeatable('--url <url>', 'http or https, absolute; repeatable, at most 5')

/** URLs, with the headers that are set at each by its number. */
function urlsOf(urls: readonly string[], headers: readonly GivenHeader[]) {
  const outside = headers.find(({ urlNumber }) => urlNumber < 1 || urlNumber > urls.length)
  if (outside)
    throw usageError(`--header names URL ${outside.urlNumber}; there are ${urls.length}, counted from 1`)
  return urls.map((url, index) => ({
    url,
    headers: Object.fromEntries(
      headers.filter(({ urlNumber }) => urlNumber === index + 1).map(({ name, value }) => [name, value]),
    ),
  }))
}

const names = {
  urls: '--url',
  sharedSecret: '--secret',
  addSecret: '--add-secret',
  removeSecrets: '--remove-secret',
}

const page: CommandShape = { text: (view: DestinationView) => pageOf(view) }

const create: CommandShape = {
  ...page,
  names,
  addFlags(command) {
    addSecretFlags(command.addOption(urlFlag().makeOptionMandatory()))
  },
  read(options) {
    const flags = options as UrlFlags
    const urls = urlsOf(flags.url!, givenHeaders(flags))
    const body = { urls, ...givenSecrets(flags) }
    return () => ({ body })
  },
}

const update: CommandShape = {
  ...page,
  names,
  addFlags(command: Command) {
    addRotationFlags(
      addSecretFlags(
        command
          .addOption(urlFlag())
          .addOption(
            repeatable('--remove-header <header>', 'takes a header away, as "URL-number:Name"; repeatable'),
          ),
      ),
    )
  },
  read(options, [id]) {
    const flags = options as UrlFlags
    const [headers, secrets] = [givenHeaders(flags), givenSecrets(flags)]
    return ({ settings: { state } }: CommandSession) => {
      if (headers.length === 0 && flags.url === undefined) return { body: secrets }
      // Headers go by the number of their URL: the URLs must be those that they were counted in.
      const found = settingIn(destinationKind, state, id!)
      const urls = urlsOf(flags.url ?? found.urls.map(({ url }) => url), headers)
      return { body: { ...secrets, urls }, ifMatch: tagOf(found) }
    }
  },
}

export const destinationShapes: Readonly<Record<string, CommandShape>> = {
  listDestinations: {
    row: { headings, of: rowOf },
    none: 'no destinations; `postrider destinations create --help` shows how to add one',
  },
  showDestination: page,
  enableDestination: page,
  disableDestination: page,
  pauseDestination: page,
  resumeDestination: page,
  createDestination: create,
  updateDestination: update,
  testDestination: {
    text: ({ data }: { data: ReturnType<typeof sampleView>[] }, { context: { config } }) =>
      [
        table(
          ['URL', 'OUTCOME', 'STATUS', 'MS', 'ADDRESS', 'DETAIL'],
          data.map(({ number, url, outcome, status, durationMs, detail }) => [
            String(number),
            outcome,
            String(status ?? '-'),
            durationMs,
            url,
            detail ?? '',
          ]),
        ),
        `Sent from this machine with this command's settings (WEBHOOK_ALLOWED_NETWORKS: ${config.allowedNetworks.join() || 'not set'}); forwarders may have others.`,
      ].join('\n'),
    hasFailed: ({ succeeded }: { succeeded: boolean }) => !succeeded,
  },
}
