/** Drawn on a 24 × 24 grid with one stroke. */
const shapes = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  destinations: 'M4 12h11M11 7l5 5-5 5M20 5v14',
  find: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20',
  letters: 'M4 7l8 6 8-6M4 6h16v12H4z',
  live: 'M4 12h4l2.5-7 3.5 14 2.5-7H20',
  audit: 'M5 12.5l4 4L19 7',
  sources: 'M20 12H9M13 7l-5 5 5 5M4 5v14',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-3.5 2.5-6 6-6s6 2.5 6 6M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.5c2 .8 3 3 3 5.5',
  erase: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  system: 'M5 4h14v6H5zM5 14h14v6H5zM8.5 7h.01M8.5 17h.01',
  menu: 'M4 7h16M4 12h16M4 17h16',
  more: 'M5 11h1v2H5zM11.5 11h1v2h-1zM18 11h1v2h-1z',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  warning: 'M12 4 2.8 20h18.4zM12 10v4.5M12 17.2h.01',
  out: 'M10 5H5v14h5M14 8l4 4-4 4M18 12H9',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5l12 7-12 7z',
  send: 'M4 12 20 4l-5 16-3.5-6.5z',
  next: 'M9 6l6 6-6 6',
} as const

export type IconName = keyof typeof shapes

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={shapes[name]} />
    </svg>
  )
}
