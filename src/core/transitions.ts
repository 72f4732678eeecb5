/** By state and event, the state that follows. What is not named cannot happen. */
export type Transitions<State extends string, Event extends string> = Readonly<
  Record<State, Readonly<Partial<Record<Event, State>>>>
>

/** The state after the event. Throws where the table names none: that is a bug. */
export function stateAfter<State extends string, Event extends string>(
  table: Transitions<State, Event>,
  state: State,
  event: Event,
): State {
  const next = table[state][event]
  if (next === undefined) throw new Error(`a bug: "${event}" cannot happen in the state "${state}"`)
  return next
}
