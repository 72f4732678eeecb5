/** The calls that an application makes; `delete` is Postrider's own. */
export type ClientCallType = 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias'

/** Numbers are sent as strings. An empty string counts as absent. */
export type Id = string | number

/** Every call needs `userId`, the user's id in your database, or `anonymousId`, any id of your own for a user that you do not know yet. */
export type Identity =
  { userId: Id; anonymousId?: Id | null | undefined } | { userId?: Id | null | undefined; anonymousId: Id }

/** What every call takes. `null` counts as absent everywhere. */
export interface CommonFields {
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
export type IdentifyCall = CommonFields &
  Identity & {
    traits?: object | null | undefined
  }

/** Something that a user did. */
export type TrackCall = CommonFields &
  Identity & {
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
export type PageCall = CommonFields &
  Identity & {
    name?: string | null | undefined
    category?: string | null | undefined
    properties?: PageProperties | null | undefined
    /** Another name of `properties`. Where both are given they are merged, and `properties` wins. */
    traits?: PageProperties | null | undefined
  }

/** A user saw a screen of an app. */
export type ScreenCall = CommonFields &
  Identity & {
    name?: string | null | undefined
    category?: string | null | undefined
    properties?: object | null | undefined
  }

/** Puts a user into a group: a company, an account, a team. */
export type GroupCall = CommonFields &
  Identity & {
    groupId: Id
    /** Of the group. */
    traits?: object | null | undefined
  }

/** The user known as `previousId` is `userId` from now on. */
export type AliasCall = CommonFields & {
  userId: Id
  previousId: Id
  anonymousId?: Id | null | undefined
}
