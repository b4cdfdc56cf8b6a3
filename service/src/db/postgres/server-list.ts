/** The list of servers that a URL of PostgreSQL names, as libpq reads it. */

/**
 * Returns the URL of each server of `postgres://user@host1:5432,host2/name?target_session_attrs=read-write`, or `null` for a text that is
 * no such URL. A list must ask for the server that takes writes, because this service writes.
 */
export function parseServers(url: string): string[] | null {
  const [, scheme = '', user = '', hosts = '', rest = ''] =
    /^(postgres(?:ql)?:\/\/)((?:[^@/?#]*@)?)([^@/?#]*)(.*)$/s.exec(url) ?? []
  const urls = hosts.split(',').map((host) => `${scheme}${user}${host}${rest}`)
  if (scheme === '' || !urls.every((one) => URL.canParse(one))) return null
  if (urls.length === 1) return urls
  const wishes = urls.map((one) => new URL(one).searchParams.get('target_session_attrs') ?? '')
  const isList = !hosts.split(',').includes('') && wishes.every((wish) => ['read-write', 'primary'].includes(wish))
  return isList ? urls : null
}
