import { fullFormats } from 'ajv-formats/dist/formats.js'

export const formatNames = [
  'date',
  'time',
  'date-time',
  'duration',
  'uri',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
] as const

/** No longer text is any of these. Some of their expressions take long for a long one. */
const maxFormatLength = 2_048

/** What there is of JSON Schema's `format`: whether a text is of it. */
export const formats: Readonly<Record<string, (text: string) => boolean>> = Object.fromEntries(
  formatNames.map((name) => [name, boundedFormat(name)]),
)

function boundedFormat(name: (typeof formatNames)[number]): (text: string) => boolean {
  const format = fullFormats[name]
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format
  const isValid =
    check instanceof RegExp ? (text: string) => check.test(text) : (check as (text: string) => boolean)
  return (text) => text.length <= maxFormatLength && isValid(text)
}
