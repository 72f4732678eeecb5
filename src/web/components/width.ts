import { signal } from '@preact/signals'

export type Width = 'narrow' | 'medium' | 'wide'

/** As the style sheets have them. */
const narrow = window.matchMedia('(max-width: 700px)')
const medium = window.matchMedia('(max-width: 1100px)')

const read = (): Width => (narrow.matches ? 'narrow' : medium.matches ? 'medium' : 'wide')

/** How wide the window is. */
export const width = signal(read())

for (const each of [narrow, medium]) each.addEventListener('change', () => void (width.value = read()))
