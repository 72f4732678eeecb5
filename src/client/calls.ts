/** The calls that an application makes; `delete` is Postrider's own. */
export type ClientCallType = 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias'

/** Numbers are sent as strings. An empty string counts as absent. */
export type Id = string | number

/** What every call takes. `null` counts as absent everywhere. */
export interface CommonFields {
  /** The user's id in your database. Every call needs `userId` or `anonymousId`. */
  userId?: Id | null | undefined
  /** Any id of your own for a user that you do not know yet. */
  anonymousId?: Id | null | undefined
  /** By this receivers know a call again; at most 100 characters. Made when absent. */
  messageId?: string | null | undefined
  /**
   * Only for what happened in the past (historical import): a `Date`, or an ISO 8601 text, UTC unless it says
   * otherwise. Comes out as given, to the millisecond. Leave it out for what happens now.
   */
  timestamp?: Date | string | null | undefined
  /** About the call rather than the user: `ip`, `device`, `locale` and so on. */
  context?: object | null | undefined
  /**
   * Which destinations get the call, by name, case-sensitive: `{ All: false, Webhooks: true }` for one of them
   * only. All do when absent.
   */
  integrations?: { [destination: string]: boolean | object } | null | undefined
}

/** Ties a user to traits: at the creation of an account, and when traits change. */
export interface IdentifyCall extends CommonFields {
  traits?: object | null | undefined
}

/** Something that a user did. */
export interface TrackCall extends CommonFields {
  event: string
  properties?: object | null | undefined
}

/** The keys that destinations know; others are welcome. */
export interface PageProperties {
  path?: string
  referrer?: string
  title?: string
  url?: string
  [key: string]: unknown
}

/** A user saw a page. */
export interface PageCall extends CommonFields {
  name?: string | null | undefined
  category?: string | null | undefined
  properties?: PageProperties | null | undefined
  /** Another name of `properties`; not both. */
  traits?: PageProperties | null | undefined
}

/** A user saw a screen of an app. */
export interface ScreenCall extends CommonFields {
  name?: string | null | undefined
  category?: string | null | undefined
  properties?: object | null | undefined
}

/** Puts a user into a group: a company, an account, a team. */
export interface GroupCall extends CommonFields {
  groupId: Id
  /** Of the group. */
  traits?: object | null | undefined
}

/** The user known as `previousId` is `userId` from now on. */
export interface AliasCall extends CommonFields {
  userId: Id
  previousId: Id
}
