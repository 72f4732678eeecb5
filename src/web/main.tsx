// First: what comes after it may need it.
import './app/language.ts'
import { render } from 'preact'
import { watchWhatIsAway } from './api/away.ts'
import { currentPage, followLinks } from './app/address.ts'
import { App, loadPage } from './app/app.tsx'
import { findSession } from './app/session.ts'
import { showInvisible } from './app/show-invisible.ts'
import { runClock } from './components/time.tsx'

showInvisible()
watchWhatIsAway()
followLinks()
runClock()
void findSession()
// Meanwhile, for whoever is logged in. Where it fails the page itself will tell.
const page = currentPage.value?.page
if (page && page !== 'login') loadPage(page).catch(() => {})
render(<App />, document.getElementById('app')!)
