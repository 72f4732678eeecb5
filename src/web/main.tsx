// First: what comes after it may need it.
import './app/language.ts'
import { render } from 'preact'
import { currentPage, followLinks } from './app/address.ts'
import { App } from './app/app.tsx'
import { runClock } from './app/clock.ts'
import { loadPage } from './app/loaded-page.tsx'
import { findSession } from './app/session.ts'

followLinks()
runClock()
void findSession()
// Meanwhile, for whoever is logged in. Where it fails the page itself will tell.
const page = currentPage.value?.page
if (page && page !== 'login') loadPage(page).catch(() => {})
render(<App />, document.getElementById('app')!)
