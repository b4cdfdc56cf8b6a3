/** Ponder does not start without one. */
import { Hono } from 'hono'

// oxlint-disable-next-line import/no-default-export -- Ponder reads it so
export default new Hono()
