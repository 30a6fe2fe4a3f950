/** API keys of the account: issue, name, rotate and revoke; and, for people who signed in, their passkeys and sessions. */
import { useState } from "preact/hooks"
import { useOffered, useTool } from "../Context.ts"
import { useData } from "../Data.ts"
import { Issue, KEYS, type NewKey } from "../keys/Issue.tsx"
import { Passkeys } from "../keys/Passkeys.tsx"
import { Sessions } from "../keys/Sessions.tsx"
import { Badge, Card, Code, Empty, Page, Trouble, Waiting } from "../Parts.tsx"
import { PASSKEYS } from "../Passkeys.ts"
import { ask, currentAccess, type Refused, refusedBy } from "../Requests.ts"
import { dayOfYear } from "../Text.ts"

interface Key {
  readonly key_id: string
  readonly name?: string | null
  readonly scopes?: ReadonlyArray<string>
  readonly expires_at?: string | null
  readonly revoked_at?: string | null
  readonly issued_at?: string
}

export const Keys = () => {
  const keys = useData<{ readonly keys: ReadonlyArray<Key> }>(KEYS)
  const [made, setMade] = useState<NewKey>()
  const { contract } = useTool()
  const isPerson = currentAccess().by === "session"
  const canIssue = useOffered("POST", KEYS)
  const isForbidden = keys.refused?.code === "insufficient_scope"
  const show = (key: NewKey | undefined) => {
    if (key?.key !== undefined) setMade(key)
    keys.again()
  }
  return (
    <Page title="Keys" lead="Programs call with a key. Whoever has it can spend the credits of the account.">
      {made === undefined ? null : (
        <Card title="The new key">
          <p class="notice">Copy it now. It cannot be shown again.</p>
          <Code text={made.key} label="the new key" />
        </Card>
      )}
      {canIssue && !isForbidden ? <Issue onIssued={show} /> : null}
      <Card title="Keys">
        {isForbidden ? (
          <p class="notice">
            This key may not manage keys: it lacks the scope keys. Sign in by a link in a mail, or with a key that has this scope.
          </p>
        ) : keys.data === undefined ? (
          keys.refused === undefined ? (
            <Waiting />
          ) : (
            <Trouble refused={keys.refused} again={keys.again} />
          )
        ) : null}
        {keys.data?.keys.length === 0 ? <Empty>There is no key. Issue one above: programs send it as a bearer token.</Empty> : null}
        <ul class="lines">
          {keys.data?.keys.map((key) => (
            <KeyLine key={key.key_id} of={key} onChanged={show} />
          ))}
        </ul>
      </Card>
      {isPerson && contract.find("GET", PASSKEYS) !== undefined ? <Passkeys /> : null}
      {isPerson ? <Sessions /> : null}
    </Page>
  )
}

const ended = ({ expires_at, revoked_at }: Key): boolean =>
  (revoked_at ?? null) !== null || (expires_at != null && Date.parse(expires_at) <= Date.now())

const KeyLine = ({ of, onChanged }: { readonly of: Key; readonly onChanged: (made: NewKey | undefined) => void }) => {
  const { contract } = useTool()
  const [refused, setRefused] = useState<Refused>()
  const act = (method: string, path: string) => {
    setRefused(undefined)
    ask<NewKey | undefined>({ method, path, ...(method === "POST" ? { body: {} } : {}) }).then(
      (made) => onChanged(method === "POST" ? made : undefined),
      (error: unknown) => setRefused(refusedBy(error))
    )
  }
  const path = `${KEYS}/${of.key_id}`
  const isEnded = ended(of)
  return (
    <li class="inbox-line">
      <span>
        {of.name ?? "Unnamed"} <Badge tone={isEnded ? "calm" : "good"}>{isEnded ? "ended" : "active"}</Badge>
        <br />
        <span class="hint">
          <code>{of.key_id}</code> {of.scopes?.join(", ")}
          {of.expires_at == null ? "" : `, until ${dayOfYear(of.expires_at)}`}
        </span>
      </span>
      {isEnded ? null : (
        <span class="row">
          {contract.operations.some(({ method, path }) => method === "POST" && path.startsWith(`${KEYS}/{`) && path.endsWith("/rotate")) ? (
            <button type="button" class="small" onClick={() => act("POST", `${path}/rotate`)}>
              Rotate
            </button>
          ) : null}
          <button type="button" class="small danger" onClick={() => act("DELETE", path)}>
            Revoke
          </button>
        </span>
      )}
      {refused === undefined ? null : <Trouble refused={refused} />}
    </li>
  )
}
