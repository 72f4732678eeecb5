/**
 * This process's part of what its consumer group reads, more than 0 and at most 1. Endpoints are shared with the other
 * members, which have a queue, a limit and a budget for them too: so each member takes its part of what one alone
 * would take. It changes as members come and go.
 */
export interface GroupShare {
  readonly share: number
}

export const wholeGroup: GroupShare = { share: 1 }
