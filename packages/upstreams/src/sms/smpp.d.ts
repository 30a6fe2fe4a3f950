declare module "smpp" {
  import type { EventEmitter } from "node:events"
  import type { Server as NetServer } from "node:net"

  /** A text, or bytes of a coding that the package does not know. */
  interface Message {
    readonly message?: string | Buffer
    /** Elements of the user data header: identifier, length, data. */
    readonly udh?: ReadonlyArray<Buffer>
  }

  interface Pdu {
    readonly command: string
    readonly command_status: number
    readonly sequence_number: number
    readonly esm_class?: number
    readonly source_addr?: string
    readonly source_addr_ton?: number
    readonly destination_addr?: string
    readonly short_message?: Message
    readonly message_payload?: Message | string | Buffer
    readonly sar_msg_ref_num?: number
    readonly sar_total_segments?: number
    readonly sar_segment_seqnum?: number
    readonly system_id?: string
    readonly password?: string
    readonly response: (fields?: object) => Pdu
  }

  interface Session extends EventEmitter {
    readonly send: (pdu: Pdu) => boolean
    readonly bind_transceiver: (fields: object, answered: (pdu: Pdu) => void) => boolean
    readonly enquire_link: (answered: (pdu: Pdu) => void) => boolean
    readonly unbind: (answered?: (pdu: Pdu) => void) => boolean
    readonly deliver_sm: (fields: object, answered: (pdu: Pdu) => void) => boolean
    readonly destroy: () => void
    readonly close: () => void
  }

  interface Smpp {
    readonly connect: (options: { readonly url: string; readonly rejectUnauthorized?: boolean }, connected: () => void) => Session
    readonly createServer: (onSession: (session: Session) => void) => NetServer
    readonly ESME_RBINDFAIL: number
  }

  const smpp: Smpp
  export default smpp
  export type { Message, Pdu, Session, Smpp }
}
