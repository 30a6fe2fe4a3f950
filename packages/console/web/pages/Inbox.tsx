/** Disposable inboxes: create one, watch mail arrive, and read it in a frame that can do nothing. */
import { useState } from "preact/hooks"
import { useTool } from "../Context.ts"
import type { Contract } from "../Contract.ts"
import { useData } from "../Data.ts"
import { useChanges } from "../Live.ts"
import { MailFrame } from "../MailFrame.tsx"
import { Card, Code, Empty, Page, Trouble, Waiting } from "../Parts.tsx"
import { ask, type Refused, read, refusedBy } from "../Requests.ts"
import { CALLS, type Call, type Calls } from "../Shapes.ts"
import { away, credits, minute, size } from "../Text.ts"

export const INBOXES = "/api/v1/temp-mail/inboxes"

interface InboxData {
  readonly inbox_id: string
  readonly address: string
  readonly label: string | null
  readonly expires_at: string
}

interface Mailbox {
  readonly name: string | null
  readonly address: string
}

interface Summary {
  readonly message_id: string
  readonly from: Mailbox | null
  readonly subject: string | null
  readonly received_at: string
  readonly size: number
}

interface Message extends Summary {
  readonly to: ReadonlyArray<Mailbox>
  readonly text: string | null
  readonly html: string | null
  readonly unreadable: string | null
  readonly attachments: ReadonlyArray<{ readonly name: string | null; readonly content_type: string; readonly size: number }>
}

/** An inbox has the letters of the reservation that paid for it. */
const idOf = ({ reservation_id }: Call): string => reservation_id.replace(/^res_/u, "inbox_")

const priceOf = (contract: Contract, method: string, path: string): string => {
  const price = contract.find(method, path)?.price?.credits ?? 0
  return price === 0 ? "free" : credits(price)
}

export const Inbox = () => {
  const { contract } = useTool()
  const made = useData<Calls>(`${CALLS}?operation=inbox.create&outcome=charged&limit=25`)
  const [open, setOpen] = useState<InboxData>()
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const attempt = (asked: Promise<InboxData>) => {
    setBusy(true)
    setRefused(undefined)
    asked
      .then(
        (inbox) => {
          setOpen(inbox)
          made.again()
        },
        (error: unknown) => setRefused(refusedBy(error))
      )
      .finally(() => setBusy(false))
  }
  const create = (event: SubmitEvent) => {
    event.preventDefault()
    const label = String(new FormData(event.currentTarget as HTMLFormElement).get("label") ?? "").trim()
    attempt(ask({ method: "POST", path: INBOXES, body: label === "" ? {} : { label } }))
  }
  return (
    <Page title="Inbox" lead="Addresses for an hour, for testing. Mail that arrives is shown here at once.">
      {open === undefined ? null : <OpenInbox key={open.inbox_id} inbox={open} onGone={() => setOpen(undefined)} />}
      <Card title="New inbox">
        <form class="row" onSubmit={create}>
          <label class="field grows">
            <span>
              Label <span class="optional">optional</span>
            </span>
            <input name="label" maxLength={100} autocomplete="off" />
          </label>
          <button type="submit" class="main at-end" disabled={isBusy}>
            Create
          </button>
        </form>
        <p class="hint">Costs {priceOf(contract, "POST", INBOXES)}.</p>
        {refused === undefined ? null : <Trouble refused={refused} />}
      </Card>
      <Card title="Inboxes">
        {made.data === undefined ? made.refused === undefined ? <Waiting /> : <Trouble refused={made.refused} again={made.again} /> : null}
        {made.data?.calls.length === 0 ? <Empty>There is no inbox yet. Create one above, and send mail to its address.</Empty> : null}
        <ul class="lines">
          {made.data?.calls.map((call) => (
            <li key={call.reservation_id} class="inbox-line">
              <span>
                <code>{idOf(call)}</code>
                <span class="hint"> created {minute(call.started_at)}</span>
              </span>
              <button
                type="button"
                class="small"
                disabled={isBusy || open?.inbox_id === idOf(call)}
                onClick={() => attempt(read(`${INBOXES}/${idOf(call)}`))}
              >
                Open ({priceOf(contract, "GET", `${INBOXES}/{inbox}`)})
              </button>
            </li>
          ))}
        </ul>
      </Card>
    </Page>
  )
}

const OpenInbox = ({ inbox, onGone }: { readonly inbox: InboxData; readonly onGone: () => void }) => {
  const { contract } = useTool()
  const path = `${INBOXES}/${inbox.inbox_id}`
  const list = useData<{ readonly messages: ReadonlyArray<Summary> }>(`${path}/messages`)
  const [chosen, setChosen] = useState<string>()
  useChanges(({ inboxes, isFirst }) => (isFirst || inboxes.includes(inbox.inbox_id)) && list.again())
  const remove = () => ask({ method: "DELETE", path }).then(onGone, onGone)
  const messages = list.data?.messages ?? []
  return (
    <Card
      title={inbox.label ?? "Open inbox"}
      aside={
        <>
          gone {away(inbox.expires_at, Date.now())}{" "}
          <button type="button" class="small danger" onClick={remove}>
            Delete
          </button>
        </>
      }
    >
      <Code text={inbox.address} label="the address" />
      {list.refused === undefined ? null : <Trouble refused={list.refused} again={list.again} />}
      <div aria-live="polite">
        {messages.length === 0 ? <Empty>Waiting for mail.</Empty> : null}
        <ul class="lines">
          {messages.map(({ from, message_id, received_at, subject }) => (
            <li key={message_id}>
              <button type="button" class="message" aria-expanded={message_id === chosen} onClick={() => setChosen(message_id)}>
                <span class="message-subject">{subject ?? "(no subject)"}</span>
                <span class="hint">{from === null ? "unknown sender" : (from.name ?? from.address)}</span>
                <time class="line-time" dateTime={received_at}>
                  {minute(received_at)}
                </time>
              </button>
              {message_id === chosen ? <Letter path={`${path}/messages/${message_id}`} /> : null}
            </li>
          ))}
        </ul>
      </div>
      <p class="hint">
        Each look at the list costs {priceOf(contract, "GET", `${INBOXES}/{inbox}/messages`)}, as does each message that is opened.
      </p>
    </Card>
  )
}

const named = ({ address, name }: Mailbox): string => (name === null || name === "" ? address : `${name} <${address}>`)

const Letter = ({ path }: { readonly path: string }) => {
  const { data, refused, again } = useData<Message>(path)
  if (refused !== undefined) return <Trouble refused={refused} again={again} />
  if (data === undefined) return <Waiting />
  return (
    <div class="letter">
      <dl class="ids">
        <div>
          <dt>From</dt>
          <dd>{data.from === null ? "unknown" : named(data.from)}</dd>
        </div>
        <div>
          <dt>To</dt>
          <dd>{data.to.map(named).join(", ")}</dd>
        </div>
      </dl>
      {data.unreadable === null ? null : <p class="notice">This message cannot be shown: {data.unreadable}</p>}
      {data.html === null ? <pre class="plain">{data.text ?? ""}</pre> : <MailFrame html={data.html} title={data.subject ?? "Message"} />}
      {data.attachments.length === 0 ? null : (
        <p class="hint">
          Attachments:{" "}
          {data.attachments
            .map(({ content_type, name, size: bytes }) => `${name ?? "unnamed"} (${content_type}, ${size(bytes)})`)
            .join("; ")}
        </p>
      )}
    </div>
  )
}
