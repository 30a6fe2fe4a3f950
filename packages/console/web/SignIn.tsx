/** Signing in: by a link that is mailed or a passkey, where the host has sessions, and by a key. */
import { useState } from "preact/hooks"
import type { Contract } from "./Contract.ts"
import { toolName } from "./Name.ts"
import { Mark } from "./Nav.tsx"
import { OPERATOR } from "./operator/Access.ts"
import { Trouble } from "./Parts.tsx"
import { hasPasskeys, signInByPasskey } from "./Passkeys.ts"
import { hrefOf } from "./Place.ts"
import { Refused, refusedBy, signIn } from "./Requests.ts"
import { askForLink, hasSessions, SIGN_UP, signUp } from "./Session.ts"
import { BILLING } from "./Shapes.ts"

export const SignIn = ({ contract }: { readonly contract: Contract }) => {
  const isBySession = hasSessions(contract)
  return (
    <main class="alone">
      <div class="brand">
        <Mark />
        <span>{toolName()}</span>
      </div>
      <h1>Sign in</h1>
      {isBySession ? <ByMail canSignUp={contract.find("POST", SIGN_UP) !== undefined} /> : null}
      {hasPasskeys(contract) ? <ByPasskey /> : null}
      <ByKey isOpen={!isBySession} />
      <p class="fine">
        <a href="/docs">API docs</a>
        {contract.hasOperator === true ? (
          <>
            {" · "}
            <a href={hrefOf(OPERATOR)}>Operator view</a>
          </>
        ) : null}
      </p>
    </main>
  )
}

const ByMail = ({ canSignUp }: { readonly canSignUp: boolean }) => {
  const [sentTo, setSentTo] = useState<string>()
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const address = String(new FormData(event.currentTarget as HTMLFormElement).get("address") ?? "").trim()
    const isNew = (event.submitter as HTMLButtonElement | null)?.value === "sign-up"
    setBusy(true)
    setRefused(undefined)
    try {
      await (isNew ? signUp(address) : askForLink(address))
      setSentTo(address)
    } catch (error) {
      setRefused(refusedBy(error))
    }
    setBusy(false)
  }
  if (sentTo !== undefined)
    return (
      <div class="notice" role="status">
        <p>
          If <strong>{sentTo}</strong> can sign in here, a link is on its way to it. Open it in this browser within 15 minutes.
        </p>
        <button type="button" class="quiet" onClick={() => setSentTo(undefined)}>
          Use another address
        </button>
      </div>
    )
  return (
    <form class="stack" onSubmit={submit}>
      <label class="field">
        <span>E-mail address</span>
        <input type="email" name="address" required autocomplete="email" maxLength={254} />
      </label>
      {refused === undefined ? null : <Trouble refused={refused} />}
      <div class="row">
        <button type="submit" class="main" value="sign-in" disabled={isBusy}>
          Mail me a link
        </button>
        {canSignUp ? (
          <button type="submit" value="sign-up" disabled={isBusy}>
            Open an account
          </button>
        ) : null}
      </div>
    </form>
  )
}

const ByPasskey = () => {
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const submit = () => {
    setBusy(true)
    setRefused(undefined)
    signInByPasskey()
      .catch((error: unknown) => setRefused(refusedBy(error)))
      .finally(() => setBusy(false))
  }
  return (
    <div class="stack">
      <button type="button" disabled={isBusy} onClick={submit}>
        Use a passkey
      </button>
      {refused === undefined ? null : <Trouble refused={refused} />}
    </div>
  )
}

const ByKey = ({ isOpen }: { readonly isOpen: boolean }) => {
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get("key") ?? "").trim()
    setBusy(true)
    setRefused(undefined)
    try {
      await tryKey(key)
    } catch (error) {
      setRefused(refusedBy(error))
      setBusy(false)
    }
  }
  return (
    <details class="by-key" open={isOpen}>
      <summary>Sign in with a key</summary>
      <form class="stack" onSubmit={submit} autocomplete="off">
        <label class="field">
          <span>API key</span>
          <input type="password" name="key" required autocomplete="off" spellcheck={false} aria-describedby="key-hint" />
        </label>
        <p class="hint" id="key-hint">
          The key stays in the memory of this page. A reload forgets it.
        </p>
        {refused === undefined ? null : <Trouble refused={refused} />}
        <button type="submit" class="main" disabled={isBusy}>
          {isBusy ? "Signing in" : "Sign in"}
        </button>
      </form>
    </details>
  )
}

/** Signs in with a key, if the host knows it. A key that may not read the account counts: it may still make calls. */
const tryKey = async (key: string): Promise<void> => {
  if (!/^[\x21-\x7e]+$/u.test(key)) throw new Refused("unauthorized", "This is no API key.", 0)
  const response = await fetch(BILLING, { credentials: "omit", headers: { Authorization: `Bearer ${key}` } }).catch(() => undefined)
  if (response === undefined) throw new Refused("unreachable", "The server could not be reached.", 0)
  if (response.status === 401) throw new Refused("unauthorized", "The server does not know this key, or it has ended.", 401)
  signIn({ by: "key", key })
}
