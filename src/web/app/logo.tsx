export function Logo() {
  return (
    <span class="logo">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" />
        <path d="M8 9.5h11.5a4.75 4.75 0 0 1 0 9.5H12v4.5" />
        <circle cx="12" cy="23.5" r="2.4" />
      </svg>
      Postrider
    </span>
  )
}
