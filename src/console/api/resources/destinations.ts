import type { HeaderEdit } from '../../../core/settings/commands.ts'
import { givenOptions, type OptionsEdit } from '../../../core/settings/destination-options.ts'
import { rateOf } from '../../../core/pacing/rate.ts'
import { destinationKind, sampleView } from '../../destinations.ts'
import { settingIn } from '../../setting-kind.ts'
import { sealerFor, type Sealer } from '../../sealing-key.ts'
import { operation, type Operation } from '../operation.ts'
import { idParams, settingOperations } from '../setting-operations.ts'
import { destinationCreate, destinationUpdate, sampleOutcomes } from './destination-schemas.ts'

export const destinationOperations: Operation[] = [
  ...settingOperations({
    ...destinationKind,
    name: 'Destination',
    isVersioned: true,
    flags: {
      sourceIds: 'source',
      urls: null,
      sharedSecret: null,
      addSecret: null,
      removeSecrets: null,
      enabled: '!disabled',
    },
    createBody: destinationCreate,
    updateBody: destinationUpdate,
    texts: {
      show: { summary: 'One destination, and whether its URLs are gone' },
      update: { summary: 'Change what is given, and nothing else' },
      enable: { summary: 'Send to it again, also to URLs that were gone' },
      disable: { summary: 'Send it nothing' },
    },
    create(body, { settings, secrets }) {
      const { id, name, sourceIds, urls, sharedSecret = null, enabled, anyKey } = body
      const sealer = sealerFor(settings, secrets, { destinationId: id, anyKey })
      const command = {
        type: 'create_destination',
        id,
        name,
        sourceIds,
        urls: urls.map(({ url }) => url),
        headers: headerEdits(urls, sealer),
        sharedSecret: sharedSecret === null ? null : sealer.newSecret(sharedSecret),
        options: optionsEdit(body),
        enabled,
      } as const
      const asked = {
        ...command,
        sharedSecret: command.sharedSecret?.fingerprint,
        headers: command.headers.map(({ value, ...header }) => ({ ...header, value: value?.fingerprint })),
      }
      return { command, asked, check: sealer.check }
    },
    update(id, body, { settings, secrets }) {
      const { name, sourceIds, urls, sharedSecret, addSecret, removeSecrets, anyKey } = body
      const sealer = sealerFor(settings, secrets, { destinationId: id, anyKey })
      const command = {
        type: 'update_destination',
        id,
        name,
        sourceIds,
        urls: urls?.map(({ url }) => url),
        headers: urls && headerEdits(urls, sealer),
        ...(sharedSecret !== undefined && {
          sharedSecret: sharedSecret === null ? null : sealer.newSecret(sharedSecret),
        }),
        ...(addSecret !== undefined && { addSecret: sealer.newSecret(addSecret) }),
        removeSecrets,
        options: optionsEdit(body),
      } as const
      return { command, check: sealer.check }
    },
  }),
  operation({
    id: 'testDestination',
    route: 'POST /destinations/{id}/test',
    command: 'destinations test',
    role: 'operator',
    summary: 'Send one sample call to each URL, once, enabled or not, from the console and with its settings',
    params: idParams,
    success: { status: 200, description: 'The outcome at each URL.', schema: sampleOutcomes },
    async handle({ params: { id } }, { settings, sendSample }) {
      const results = await sendSample(settingIn(destinationKind, settings.state, id))
      const data = results.map(sampleView)
      return { status: 200, body: { succeeded: data.every(({ outcome }) => outcome === 'success'), data } }
    },
  }),
]

function headerEdits(
  urls: readonly { headers?: Record<string, string | null> | undefined }[],
  sealer: Sealer,
): HeaderEdit[] {
  return urls.flatMap(({ headers = {} }, index) =>
    Object.entries(headers).map(([name, value]) => ({
      urlNumber: index + 1,
      name,
      value: value === null ? null : sealer.newSecret(value),
    })),
  )
}

/** The options among the fields of a body. */
function optionsEdit(body: OptionsEdit): OptionsEdit | undefined {
  const edit = givenOptions({ ...body, maxRate: body.maxRate && rateOf(body.maxRate) })
  return Object.keys(edit).length > 0 ? edit : undefined
}
