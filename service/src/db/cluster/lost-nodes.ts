/** Errors of Citus for a node that stops in the middle of a statement. Citus names some of them as faults of its own (XX000, 58030). */

/** Returns whether a statement failed because of a node, and may succeed when it is repeated. */
export function isOfLostNode({ code, message }: Readonly<{ code?: string | undefined; message: string }>): boolean {
  return (code === 'XX000' || code === '58030') && texts.test(message)
}

const texts = new RegExp(
  `^(?:${[
    'postmaster was shut down',
    'server closed the connection',
    'terminating connection due to',
    'connection not open',
    'failure on connection marked as essential',
    'failed to COPY to shard',
  ].join('|')})`,
)
