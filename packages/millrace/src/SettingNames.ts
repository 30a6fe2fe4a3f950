/** How sentences name a setting to their reader: users of the command line know flags and variables, hosts of the library know options. */
import { Context } from "effect"

export interface Names {
  readonly against: string
  readonly blobs: string
  readonly effectiveAt: string
  readonly erasures: string
  readonly state: string
  readonly masterKey: string
  readonly newOperations: string
  readonly proxyCountry: string
  readonly proxyHost: string
  readonly proxyUpstreams: string
  readonly store: string
  readonly streams: string
  readonly writeStreams: string
}

const FLAGS: Names = {
  against: "--against",
  blobs: "--blobs or MILLRACE_BLOBS",
  effectiveAt: "--effective-at",
  erasures: "--register or MILLRACE_ERASURES",
  state: "--state or MILLRACE_STATE",
  masterKey: "MILLRACE_MASTER_KEY",
  newOperations: "--new-operations",
  proxyCountry: "--proxy-country",
  proxyHost: "--proxy-host",
  proxyUpstreams: "--proxy-upstreams",
  store: "--store or MILLRACE_STORE",
  streams: "--streams",
  writeStreams: "--write-streams"
}

/** For hosts of the library. */
export const OPTIONS: Names = {
  against: "the option against",
  blobs: "the option blobs",
  effectiveAt: "the option effectiveAt",
  erasures: "the option erasures",
  state: "the option state",
  masterKey: "the option masterKey or MILLRACE_MASTER_KEY",
  newOperations: "the option newOperations",
  proxyCountry: "the option proxy.country",
  proxyHost: "the option proxy.host",
  proxyUpstreams: "the option proxy.upstreamsFile",
  store: "the option store",
  streams: "the option streams",
  writeStreams: "the option writeStreams"
}

export const Current = Context.Reference<Names>("millrace/SettingNames/Current", { defaultValue: () => FLAGS })
