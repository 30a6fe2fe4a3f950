/** The sessions of the person who signed in, to end them. */
import { useData } from "../Data.ts"
import { Badge, Card, Trouble } from "../Parts.tsx"
import { ask, signIn } from "../Requests.ts"
import { SESSIONS } from "../Session.ts"
import { away, browserName } from "../Text.ts"

interface Session {
  readonly session_id: string
  readonly current: boolean
  readonly used_at: string
  readonly user_agent: string | null
  readonly ip: string | null
}

export const Sessions = () => {
  const sessions = useData<{ readonly sessions: ReadonlyArray<Session> }>(SESSIONS)
  const end = (id: string) => ask({ method: "DELETE", path: `${SESSIONS}/${id}` }).then(sessions.again, sessions.again)
  const endAll = () => ask({ method: "DELETE", path: SESSIONS }).then(() => signIn({ by: "nobody" }), sessions.again)
  return (
    <Card
      title="Sessions"
      aside={
        <button type="button" class="small danger" onClick={endAll}>
          Sign out everywhere
        </button>
      }
    >
      {sessions.refused === undefined ? null : <Trouble refused={sessions.refused} again={sessions.again} />}
      <ul class="lines">
        {sessions.data?.sessions.map(({ current, ip, session_id, used_at, user_agent }) => (
          <li key={session_id} class="inbox-line">
            <span>
              <span title={user_agent ?? undefined}>{user_agent === null ? "Unknown browser" : browserName(user_agent)}</span>
              <br />
              <span class="hint">
                {ip ?? "unknown address"}, used {away(used_at, Date.now())}
              </span>
            </span>
            {current ? (
              <Badge tone="good">this browser</Badge>
            ) : (
              <button type="button" class="small danger" onClick={() => end(session_id)}>
                End
              </button>
            )}
          </li>
        ))}
      </ul>
    </Card>
  )
}
