// Chromium in the C locale calls its language `en-US@posix`, which is none: uPlot, which formats numbers by it as it is
// loaded, would take the whole page down.
try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en' })
}
