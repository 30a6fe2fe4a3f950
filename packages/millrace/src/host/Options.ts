/** The options of `createMillrace`. */
import type { BlobStore, MasterKey, Millrace, Money, Vault } from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import type { Api } from "@millrace/http"
import type { Duration, Layer } from "effect"
import type { ClusterOptions, MailOptions, ProxyOptions, SmsOptions } from "./Incoming.ts"
import type { Job } from "./Job.ts"
import type { Operation } from "./Operation.ts"
import type { PaymentOptions } from "./PaymentOptions.ts"
import type { SignInOptions } from "./SignInOptions.ts"
import type { StandardName } from "./Standard.ts"

// biome-ignore lint/suspicious/noExplicitAny: operations of any input
export type AnyOperation = Operation<any, any, any> | Job<any, any, any>

/** The services of the Effects that operations return. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type ServicesOf<Op> = Op extends Operation<any, any, infer R> | Job<any, any, infer R> ? R : never

export type Options<Operations extends ReadonlyArray<AnyOperation> = ReadonlyArray<AnyOperation>> = Settings &
  Stored &
  Offered<Operations> &
  Needed<ServicesOf<Operations[number]>>

/** The options of any host. */
export interface AnyOptions extends Settings {
  readonly store: string | Layer.Layer<EventStore.EventStore, unknown>
  readonly state?: string | Layer.Layer<StateStore.StateStore, unknown>
  readonly operations?: ReadonlyArray<AnyOperation>
  readonly standard?: true | ReadonlyArray<StandardName>
  readonly services?: Layer.Layer<never, unknown>
}

/** The host's own operations, those that come with Millrace, or both. */
type Offered<Operations> =
  | { readonly operations: Operations; readonly standard?: true | ReadonlyArray<StandardName> }
  | { readonly operations?: Operations; readonly standard: true | ReadonlyArray<StandardName> }

/**
 * The services of own operations that return Effects, as a layer. It may also provide an upstream of a standard operation, which then goes
 * before the default.
 */
type Needed<R> = [R] extends [never] ? { readonly services?: Layer.Layer<never, unknown> } : { readonly services: Layer.Layer<R, unknown> }

/**
 * `store`: `sqlite:./data/millrace.db`, `postgres://…`, `kurrentdb://…`, or `memory:`. A store in files is made if it is missing. Or a layer;
 * then `masterKey` must be given.
 *
 * `state`: for a log on KurrentDB, where keys, replies and leases are kept: `postgres://…`, `sqlite:PATH` for one host, or a layer.
 */
type Stored =
  | { readonly store: string; readonly state?: string | Layer.Layer<StateStore.StateStore, unknown> }
  | { readonly store: Layer.Layer<EventStore.EventStore | StateStore.StateStore, unknown>; readonly state?: never }
  | { readonly store: Layer.Layer<EventStore.EventStore, unknown>; readonly state: Layer.Layer<StateStore.StateStore, unknown> }

export interface Settings {
  /** 32 bytes as 64 hexadecimal digits or Base64. Without one, a store in files has it in `master.key` beside it. */
  readonly masterKey?: string | Layer.Layer<MasterKey, unknown>
  /** Where files of jobs are kept: a folder, `s3:https://HOST/BUCKET`, or a layer. By default the folder `blobs` beside the store. */
  readonly blobs?: string | Layer.Layer<BlobStore.BlobStore, unknown, Vault.Vault>
  /** What does the work of standard operations. BIN, DNS, e-mail, grammar and topics need nothing. */
  readonly providers?: Providers
  /** What credits are called and worth: `{ credit: "token", credits: "tokens", value: "0.002 EUR" }`; by default a credit of 0.001 USD. */
  readonly money?: MoneyOptions
  /** What stands at the top of the API's document: title, version, description, contact, licence, servers. */
  readonly api?: Info
  /** Web pages that may call from a browser, such as `https://app.example.com`: none by default. */
  readonly corsOrigins?: ReadonlyArray<string>
  /** Calls of an account in a window of seconds: 60 in 60 by default. */
  readonly rateLimit?: { readonly limit: number; readonly window: number }
  /** Credits that an account gets when it is verified: 200 by default. */
  readonly signUpCredits?: number
  /**
   * Whether an account whose address was not verified yet, and that was never granted credits, may make ten free calls: true by default.
   */
  readonly trial?: boolean
  /** For one of several hosts on a store: calls then run at the host that leads their account. By default each host runs its own. */
  readonly cluster?: ClusterOptions
  /** A call that succeeds after its hold has ended: its result is withheld, the default, or charged again. */
  readonly late?: "withhold" | "charge"
  /** Failures in a row that open the circuit of an area of operations, 5 by default; milliseconds that it stays open, 10,000 by default. */
  readonly breaker?: { readonly failures?: number; readonly openFor?: number }
  /** Jobs that this process runs at once: 16 by default; with 0 it only accepts them. */
  readonly jobs?: number
  /** Seconds after which another process takes over the jobs of one that died: 30 by default; the same at all hosts. */
  readonly jobLease?: number
  /**
   * Where small inputs and results of jobs are stored, encrypted: in the state store, or in the log, which takes fewer writes. By default in
   * the log if it is in files or in memory. For another store, first all processes on it must run a release that has this option.
   */
  readonly jobDocuments?: "state" | "events"
  /** Hours for which ended jobs, their results and files are kept. By default what each job says, or 24. */
  readonly jobRetention?: number
  /** Whether and how this process delivers webhooks, and whether they may go to private networks. */
  readonly webhooks?: WebhookOptions
  /** The domain of inboxes, and whether and how this process receives their mail. Without it, temporary mail is not set up. */
  readonly mail?: MailOptions
  /** The public phone numbers, and what brings their messages. Without it, verification codes are not set up. */
  readonly sms?: SmsOptions
  /** What takes payments of credits, and what is given on top. Without it, credits cannot be bought here. */
  readonly payments?: PaymentOptions
  /** After how many confirmations by other accounts a submitted coupon is accepted; 0 accepts it at once. By default operators decide. */
  readonly coupons?: { readonly acceptAfter?: number }
  /** How people sign up and sign in with a browser, by links that are mailed to them. Without it, the host opens all accounts. */
  readonly signIn?: SignInOptions
  /** The bounds of proxy sessions, and the proxy node that this process serves: none by default. */
  readonly proxy?: ProxyOptions
  /** Where the web tool is, such as `/console`; not served by default. */
  readonly webTool?: `/${string}`
  /**
   * The key that opens the operator view, at `/api/v1/operator` and in the web tool: at least 32 letters, digits and signs. Not served by
   * default.
   */
  readonly operatorKey?: string
  /** Seconds that `close` waits for running calls before it cancels them: 30 by default. */
  readonly grace?: number
  /** The file where erasures are written down: by default `erasures.jsonl` beside a store in files. */
  readonly erasures?: string
  /** Where log lines go: warnings and errors to the console by default. */
  readonly log?: Log
}

export interface WebhookOptions extends Millrace.WebhookOptions {
  /**
   * Also posts by http, and to this machine and private networks: false by default. Whoever sets the address of a webhook can then reach
   * these.
   */
  readonly allowPrivate?: boolean
  /** How long a receiver may take to answer: 15 seconds by default. Milliseconds, or such as `"5 seconds"`. */
  readonly timeLimit?: Duration.Input
}

export type Info = NonNullable<Parameters<typeof Api.make>[1]>

export type MoneyOptions = Partial<Pick<Money.Money, "credit" | "credits">> & {
  /** A decimal and a currency by ISO 4217: `0.002 EUR`. */
  readonly value?: string
}

/** In the words of the command line. Keys may also stand in the environment: `MILLRACE_SPEECH_KEY` and so on. */
export interface Providers {
  /** `espeak`, offline, of the package @millrace/upstream-espeak (GPL); or `openai:URL`. */
  readonly speech?: string
  readonly speechKey?: string
  /** `openai:URL`, `automatic1111:URL`, or `comfyui:URL#CHECKPOINT`. */
  readonly images?: string
  readonly imagesKey?: string
  /** The address of a LibreTranslate server, which translates prompts. */
  readonly translate?: string
  readonly translateKey?: string
  /** The address of GitHub's API, or of an Enterprise Server: that of github.com by default. `off`: nobody is asked. */
  readonly codeHost?: string
  /** A token of the code host raises its limits. What it alone could see is never returned. */
  readonly codeHostToken?: string
  /** `places`, the Places API (New) of Google, or `osm:URL` of a Nominatim server. */
  readonly mapSearch?: string
  readonly mapSearchKey?: string
  /** An e-mail address or a page by which the operators of the Nominatim server reach you. It is sent to them. */
  readonly mapSearchContact?: string
  /** The address of an Overpass server, which tells more of what the Nominatim server finds. */
  readonly overpass?: string
  /** `youtube`: the YouTube Data API, with a key. `youtubei`: the site itself, of the package @millrace/upstream-youtubei, with downloads. */
  readonly video?: string
  readonly youtubeKey?: string
  /** Where the API, or the site, is, such as a proxy of yours. */
  readonly youtubeUrl?: string
  /** Units that the API gives a day: 10,000 by default. */
  readonly youtubeQuota?: number
  /** A CSV of BIN ranges: `bin,scheme,type,brand,country,bank`. Without one, a lookup tells only scheme and brand. */
  readonly binFile?: string
  /** Name servers, such as `9.9.9.9` or `[2001:db8::1]:5353`: those of the system by default. */
  readonly dnsServers?: ReadonlyArray<string>
}

/** A logger, such as `console`: a line's text and its fields, such as `requestId`. Lines of a level that it has not are left out. */
export type Log = {
  readonly [L in "debug" | "info" | "warn" | "error"]?: (text: string, fields: Readonly<Record<string, unknown>>) => void
}
