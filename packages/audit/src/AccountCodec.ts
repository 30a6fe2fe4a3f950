/** Decodes account events with compiled decoders, for an audit spends most of its time decoding. */
import { Account, AccountEvent } from "@millrace/core"
import { EventCodec } from "@millrace/event-sourcing"
import { SchemaAST } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"

// For the encoded and the decoded form. If code generation is not allowed, Effect interprets the schema
SchemaJITCompiler.enable(AccountEvent.ast)
SchemaJITCompiler.enable(SchemaAST.toType(AccountEvent.ast))

export const accountCodec: EventCodec.EventCodec<AccountEvent> = EventCodec.make(Account.Account)
