/** The way between the pages, whether the page is live, and how to sign out. */
import { useState } from "preact/hooks"
import { useTool } from "./Context.ts"
import type { LiveState } from "./Live.ts"
import { toolName } from "./Name.ts"
import { OPERATOR } from "./operator/Access.ts"
import type { ToolPage } from "./Pages.tsx"
import { hrefOf } from "./Place.ts"
import { currentAccess } from "./Requests.ts"
import { signOut } from "./Session.ts"

const LIVE: Readonly<Record<LiveState, string>> = { live: "Live", connecting: "Connecting", off: "Not live" }

export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
    <rect width="32" height="32" rx="7" />
    <g fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round">
      <circle cx="16" cy="13" r="6.5" />
      <path d="M16 6.5v13M9.500 13h13" />
      <path d="M5 25c2.200-1.900 4.400-1.900 6.600 0s4.400 1.900 6.600 0 4.400-1.900 6.600 0" />
    </g>
  </svg>
)

export const Nav = ({
  current,
  live,
  pages
}: {
  readonly pages: ReadonlyArray<ToolPage>
  readonly current: string
  readonly live: LiveState
}) => {
  const [isLeaving, setLeaving] = useState(false)
  const leave = () => {
    setLeaving(true)
    signOut().catch(() => setLeaving(false))
  }
  return (
    <header class="side">
      <div class="brand">
        <Mark />
        <span>{toolName()}</span>
        <span class={`live ${live}`} role="status">
          {LIVE[live]}
        </span>
      </div>
      <nav aria-label="Pages">
        <ul>
          {pages.map(({ name, title }) => (
            <li key={name}>
              <a class="place" href={hrefOf(name)} aria-current={name === current ? "page" : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="side-end">
        <a href="/docs">API docs</a>
        {useTool().contract.hasOperator === true ? <a href={hrefOf(OPERATOR)}>Operator view</a> : null}
        <button type="button" class="quiet" onClick={leave} disabled={isLeaving}>
          {currentAccess().by === "key" ? "Forget the key" : "Sign out"}
        </button>
      </div>
    </header>
  )
}
