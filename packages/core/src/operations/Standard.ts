/**
 * The registry of the operations that come with Millrace. The API, its types, the catalog's groups, the prices of a new log and the typed
 * client's routes derive from it: a new operation is a file in this folder and a line here.
 */
import type { Scope } from "../accounts/ApiKey.ts"
import type * as Operation from "../work/Operation.ts"
import * as AccountActivity from "./AccountActivity.ts"
import * as AccountBilling from "./AccountBilling.ts"
import * as AccountCalls from "./AccountCalls.ts"
import * as AccountLimits from "./AccountLimits.ts"
import * as Billing from "./Billing.ts"
import * as Bin from "./Bin.ts"
import * as CatalogOperations from "./CatalogOperations.ts"
import * as CodeHost from "./CodeHost.ts"
import * as Coupons from "./Coupons.ts"
import * as Dns from "./Dns.ts"
import * as Email from "./Email.ts"
import * as EmailJobs from "./EmailJobs.ts"
import * as Grammar from "./Grammar.ts"
import * as ImageJobs from "./ImageJobs.ts"
import * as Invoices from "./Invoices.ts"
import * as Keys from "./Keys.ts"
import * as Leads from "./Leads.ts"
import * as PriceAlerts from "./PriceAlerts.ts"
import * as PriceCompare from "./PriceCompare.ts"
import * as PriceHistory from "./PriceHistory.ts"
import * as Proxies from "./Proxies.ts"
import * as Selectors from "./Selectors.ts"
import * as Speech from "./Speech.ts"
import * as SpeechJobs from "./SpeechJobs.ts"
import * as StoreCatalog from "./StoreCatalog.ts"
import * as Subscriptions from "./Subscriptions.ts"
import * as TempMail from "./TempMail.ts"
import * as Topics from "./Topics.ts"
import * as Verification from "./Verification.ts"
import * as Video from "./Video.ts"

/** Operations that share a tag of the document and a scope of API keys. */
export interface Group<Members extends ReadonlyArray<Operation.Any>> {
  /** For the documentation. */
  readonly description: string
  /** The scope that an API key needs; undefined where no key is needed, and the operations are free. */
  readonly scope: Scope | undefined
  readonly operations: Members
}

type Operations = ReadonlyArray<Operation.Any>

const group = <const Members extends Operations>(
  description: string,
  operations: Members,
  scope: Scope = "operations"
): Group<Members> => ({
  description,
  scope,
  operations
})

const publicGroup = <const Members extends Operations>(description: string, operations: Members): Group<Members> => ({
  description,
  scope: undefined,
  operations
})

export const groups = {
  catalog: publicGroup("The operations, their prices and their availability. No key is needed.", [
    CatalogOperations.read,
    CatalogOperations.capabilities,
    CatalogOperations.capability,
    CatalogOperations.config,
    CatalogOperations.groups
  ]),
  account: group(
    "Balance, calls, use and limits of the account.",
    [AccountBilling.read, AccountLimits.read, AccountActivity.read, AccountCalls.list],
    "read"
  ),
  billing: group("Credits to buy, in packs or by a subscription, and their invoices.", [
    Billing.topUp,
    Billing.captureTopUp,
    Billing.list,
    Subscriptions.subscribe,
    Subscriptions.list,
    Subscriptions.cancel,
    Invoices.list,
    Invoices.page
  ]),
  keys: group("The API keys of the account.", [Keys.list, Keys.issue, Keys.revoke, Keys.rotate], "keys"),
  lookups: group("Lookups that are answered at once.", [Grammar.check, Bin.lookup, Dns.resolve, Topics.list]),
  email: group("Whether an address receives mail, and how trustworthy it is.", [
    Email.validate,
    Email.validateBatch,
    EmailJobs.validationJob,
    EmailJobs.readValidationJob
  ]),
  mail: group("Disposable inboxes that receive mail. For testing only.", [
    TempMail.create,
    TempMail.read,
    TempMail.listMessages,
    TempMail.readMessage,
    TempMail.downloadAttachment,
    TempMail.downloadMessage,
    TempMail.rotate,
    TempMail.remove
  ]),
  images: group("Image generation and editing, as jobs.", [
    ImageJobs.generate,
    ImageJobs.edit,
    ImageJobs.read,
    ImageJobs.cancel,
    ImageJobs.download
  ]),
  audio: group("Text to speech, as jobs.", [SpeechJobs.synthesize, SpeechJobs.read, SpeechJobs.cancel, SpeechJobs.download, Speech.voices]),
  products: group("Coupons, shops and the prices of their products.", [
    Coupons.search,
    Coupons.requestStore,
    Coupons.submit,
    PriceAlerts.register,
    PriceCompare.compare,
    PriceHistory.read,
    Selectors.find
  ]),
  verification: group("Verification codes that arrive at public phone numbers of this host. For testing only.", [Verification.wait]),
  video: group("Public data of a platform that shows videos.", [
    Video.stats,
    Video.channelVideos,
    Video.outliers,
    Video.search,
    Video.download,
    Video.comments,
    Video.about,
    Video.playlist,
    Video.tags,
    Video.details
  ]),
  proxies: group("Proxy sessions, and where there are nodes.", [Proxies.locations, Proxies.createSession]),
  readers: group("Public data of other platforms.", [
    StoreCatalog.read,
    Leads.search,
    CodeHost.user,
    CodeHost.searchRepositories,
    CodeHost.activity,
    CodeHost.repository
  ])
}

/** All of them, in the order of the groups. */
export const operations: Operations = Object.values(groups).flatMap(({ operations }): Operations => operations)
