/** Reads the events of accounts, by decoders compiled for them: most of what an audit does is reading. */
import { Account, AccountEvent } from "@millrace/core"
import { EventCodec } from "@millrace/event-sourcing"
import { SchemaAST } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"

// As they are written and as they are in memory. Where code may not be generated, Effect goes on interpreting the schema
SchemaJITCompiler.enable(AccountEvent.ast)
SchemaJITCompiler.enable(SchemaAST.toType(AccountEvent.ast))

export const accountCodec: EventCodec.EventCodec<AccountEvent> = EventCodec.make(Account.Account)
