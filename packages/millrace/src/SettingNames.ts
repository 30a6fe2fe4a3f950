/** How sentences name a setting to their reader: users of the command line know flags and variables, hosts of the library know options. */
import { Context } from "effect"

export interface Names {
  readonly effectiveAt: string
  readonly erasures: string
  readonly state: string
  readonly masterKey: string
}

const FLAGS: Names = {
  effectiveAt: "--effective-at",
  erasures: "--register or MILLRACE_ERASURES",
  state: "--state or MILLRACE_STATE",
  masterKey: "MILLRACE_MASTER_KEY"
}

/** For hosts of the library. */
export const OPTIONS: Names = {
  effectiveAt: "the option effectiveAt",
  erasures: "the option erasures",
  state: "the option state",
  masterKey: "the option masterKey or MILLRACE_MASTER_KEY"
}

export const Current = Context.Reference<Names>("millrace/SettingNames/Current", { defaultValue: () => FLAGS })
