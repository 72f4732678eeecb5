// First: what comes after it may need it.
import './app/language.ts'
import { render } from 'preact'
import { followLinks } from './app/address.ts'
import { App } from './app/app.tsx'
import { runClock } from './app/clock.ts'
import { findSession } from './app/session.ts'

followLinks()
runClock()
void findSession()
render(<App />, document.getElementById('app')!)
