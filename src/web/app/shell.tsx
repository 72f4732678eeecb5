import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { pathTo } from '../../console/page-paths.ts'
import { nameOfPerson } from '../../core/access/company-roles.ts'
import { ApiFailure, type Asked } from '../api/request.ts'
import type { Route } from '../api/routes.ts'
import { Icon } from '../components/icon.tsx'
import { Menu } from '../components/menu.tsx'
import { say, Toasts } from '../components/notices.tsx'
import { CopyAsCurl } from '../components/text.tsx'
import { address, currentPage, navigation } from './address.ts'
import { AwayNote } from './away-note.tsx'
import { PartsMissing } from './parts-missing.tsx'
import { Search } from './search.tsx'
import { isLimited, logOut, session } from './session.ts'

/** On narrow screens the navigation opens over the page. */
const isMenuOpen = signal(false)

/** What is around every page: navigation, search, whose session it is, messages. */
export function Shell({ children }: { children: ComponentChildren }) {
  const { path } = address.value
  useEffect(() => {
    isMenuOpen.value = false
  }, [path])
  return (
    <div class="shell">
      <a class="skip-link" href="#content">
        Skip to the content
      </a>
      <header class="topbar">
        <button
          type="button"
          class="icon-button menu-button"
          aria-label="Menu"
          aria-expanded={isMenuOpen.value}
          aria-controls="navigation"
          onClick={() => void (isMenuOpen.value = !isMenuOpen.value)}
        >
          <Icon name={isMenuOpen.value ? 'close' : 'menu'} />
        </button>
        <a class="home" href="/">
          <Logo />
        </a>
        <Search />
        <Holder />
      </header>
      <nav id="navigation" class={isMenuOpen.value ? 'navigation is-open' : 'navigation'} aria-label="Pages">
        <ul>
          {navigation.map(({ page, label, icon, includes = [], isOfAll }) => {
            if (isOfAll && isLimited()) return null
            const here = currentPage.value?.page
            const isHere = here !== undefined && (here === page || includes.includes(here))
            return (
              <li key={page}>
                <a href={pathTo(page)} aria-current={isHere ? 'page' : undefined}>
                  <Icon name={icon} />
                  {label}
                </a>
              </li>
            )
          })}
        </ul>
      </nav>
      <main id="content" class="content" tabIndex={-1}>
        <AwayNote />
        {session.value.is === 'begun' && <PartsMissing />}
        {children}
      </main>
      <Toasts />
    </div>
  )
}

/** Whose session it is, and the way out. */
function Holder() {
  if (session.value.is !== 'begun') return null
  const { name, role, only } = session.value
  const person = nameOfPerson(name)
  const leave = async () => {
    try {
      await logOut()
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      say(`Not logged out: ${error.message}`, 'bad')
    }
  }
  return (
    <div class="holder">
      <span
        class="holder-name"
        title={`${person === null ? `Token ${name}` : person}, role ${role}${only === null ? '' : `, for ${only.join(', ')} only`}`}
      >
        {person ?? name}
        <span class="holder-role">{role}</span>
      </span>
      <button type="button" class="icon-button" aria-label="Log out" title="Log out" onClick={leave}>
        <Icon name="out" />
      </button>
    </div>
  )
}

/** The head of a page. Takes the focus when its page is gone to, so that screen readers read it and Tab goes on from there. */
export function PageTitle({
  title,
  above,
  beside,
  curl,
  menu,
  children,
}: {
  title: string
  /** Where the page belongs to: a link. */
  above?: ComponentChildren
  /** Beside the title: a state. */
  beside?: ComponentChildren
  /** The request that answers what is shown, to be copied. */
  curl?: { route: Route; asked?: Asked } | undefined
  /** Actions that are not needed often, behind a button. */
  menu?: ComponentChildren
  /** Actions, at the right; the first one to think of comes last. */
  children?: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Postrider`
  }, [title])
  useEffect(() => {
    const from = document.activeElement
    // A menu or a search that led here has had its turn.
    if (from === document.body || from?.closest('.navigation, .topbar'))
      heading.current!.focus({ preventScroll: true })
  }, [])
  return (
    <header class="page-title">
      <div>
        {above && <p class="above">{above}</p>}
        <div class="title-line">
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {beside}
        </div>
      </div>
      <div class="actions">
        {(curl || menu) && (
          <Menu>
            {curl && <CopyAsCurl {...curl} />}
            {menu && <div class="menu-part">{menu}</div>}
          </Menu>
        )}
        {children}
      </div>
    </header>
  )
}

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
