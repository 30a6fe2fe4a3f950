/** Which failures of the stores may pass when the same is tried again. */

const TRANSIENT: ReadonlySet<string> = new Set(["StoreUnavailable", "AppendInDoubt", "Busy", "StateUnavailable"])

export const isTransient = ({ _tag }: { readonly _tag: string }): boolean => TRANSIENT.has(_tag)
