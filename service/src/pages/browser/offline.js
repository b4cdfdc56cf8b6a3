/**
 * The service worker: a reload without a connection opens the offline page instead of the browser's error. It stores the files of that page
 * and nothing else; no answer, and no address of a tap, is ever stored here.
 */
const folder = new URL('./', self.location).pathname
const files = ['offline.html', 'page.css', 'page.js', 'icon.svg'].map((name) => folder + name)
const pages = ['/01/', '/token/', '/tap']

self.addEventListener('install', (event) => {
  event.waitUntil(
    caches
      .open(folder)
      .then((cache) => cache.addAll(files))
      .then(() => self.skipWaiting()),
  )
})

self.addEventListener('activate', (event) => {
  const others = caches.keys().then((names) => names.filter((name) => name !== folder))
  event.waitUntil(others.then((names) => Promise.all(names.map((name) => caches.delete(name)))))
})

self.addEventListener('fetch', (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== 'GET' || origin !== self.location.origin) return
  const kept =
    request.mode === 'navigate' && pages.some((page) => pathname.startsWith(page))
      ? `${folder}offline.html`
      : files.includes(pathname) && pathname
  if (kept) event.respondWith(fetch(request).catch(async () => (await caches.match(kept)) ?? Response.error()))
})
