import ipaddr from 'ipaddr.js'
import { isbot } from 'isbot'
import { mergedUnder, sharedMap } from '../core/call/tracking-fields.ts'
import { withEditedMembers } from '../core/json/edit-members.ts'
import { eachMember, keyOf, stringOf } from '../core/json/json-members.ts'
import type { SourceOptions } from '../core/settings/source-options.ts'

/** What a source does with addresses and bots. */
export type HygieneOptions = Pick<SourceOptions, 'ip' | 'bots'>

/**
 * What is done to the calls of one request before they are written, by the options of their source. Null where nothing is,
 * as for most sources, so that these pay for nothing.
 *
 * @param userAgent the header of the request; '' where it has none
 */
export function hygieneOf(
  { ip, bots }: HygieneOptions,
  isClientSide: boolean,
  userAgent: string,
): CallHygiene | null {
  // What servers send comes from programs.
  const botRule = isClientSide ? bots : 'keep'
  return ip === 'keep' && botRule === 'keep' ? null : new CallHygiene(ip, botRule, userAgent)
}

export class CallHygiene {
  readonly dropsBots: boolean
  readonly #ip: HygieneOptions['ip']
  readonly #bots: HygieneOptions['bots']
  /** By the header; null where the header does not say who sent the calls. */
  readonly #isBot: boolean | null
  /** The calls of a batch nearly always say the same. */
  #lastAgent = ''
  #lastIsBot = false

  constructor(ip: HygieneOptions['ip'], bots: HygieneOptions['bots'], userAgent: string) {
    this.dropsBots = bots === 'drop'
    this.#ip = ip
    this.#bots = bots
    this.#isBot = bots === 'keep' ? false : saysWho(userAgent) ? isbot(userAgent) : null
  }

  /** Whether a call with this context is a bot's; never where its source does not ask. */
  isBot(context: string | null): boolean {
    if (this.#isBot !== null) return this.#isBot
    const userAgent = context === null ? '' : userAgentIn(context)
    if (userAgent === this.#lastAgent) return this.#lastIsBot
    this.#lastAgent = userAgent
    return (this.#lastIsBot = saysWho(userAgent) && isbot(userAgent))
  }

  /** The context as it is written, of a call that is kept. */
  cleaned(context: string | null, isBot: boolean): string | null {
    const flagged = isBot && this.#bots === 'flag' ? withFlag(context) : context
    if (flagged === null || this.#ip === 'keep') return flagged
    return withEditedMembers(flagged, 'ip', this.#ip === 'drop' ? () => null : truncatedValue)
  }
}

/**
 * Segment's SDKs for apps use the routes of browsers, with a User-Agent of their own: it names a program, as those of
 * bots do, and says nothing of who uses it. React Native's on Android is that of OkHttp.
 */
const appSdk = /^(?:analytics-\w+|okhttp)\//i

const saysWho = (userAgent: string): boolean => userAgent !== '' && !appSdk.test(userAgent)

/** '' where it has none. */
function userAgentIn(context: string): string {
  let found = ''
  eachMember(context, 0, (keyStart, keyEnd, start, end) => {
    if (keyOf(context, keyStart, keyEnd) !== 'userAgent') return
    found = context[start] === '"' ? stringOf(context.slice(start, end)) : ''
  })
  return found
}

const flag = sharedMap('{"bot":true}')

/** Whatever the call says of it itself. */
const withFlag = (context: string | null): string | null =>
  mergedUnder(context && withEditedMembers(context, 'bot', () => null), flag)

function truncatedValue(value: string): string | null {
  const address = value[0] === '"' ? truncatedAddress(stringOf(value)) : null
  return address && `"${address}"`
}

/**
 * An IPv4 address without its last number, or an IPv6 address without all but the first 48 bits: zeros stand in their
 * place. Null for what is no address: there may be one somewhere in it.
 */
export function truncatedAddress(text: string): string | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return `${text.slice(0, text.lastIndexOf('.'))}.0`
  if (!ipaddr.IPv6.isValid(text)) return null
  const address = ipaddr.IPv6.parse(text)
  if (address.isIPv4MappedAddress()) return truncatedAddress(address.toIPv4Address().toString())
  return new ipaddr.IPv6([...address.parts.slice(0, 3), 0, 0, 0, 0, 0]).toString()
}
