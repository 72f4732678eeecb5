import { head } from './responses.ts'

const ok = 'HTTP/1.1 200 OK'
const ok10 = 'HTTP/1.0 200 OK'
const noContent = 'HTTP/1.1 204 No content'
const chunked = 'Transfer-Encoding: chunked'
const length = (bytes: number): string => `Content-Length: ${bytes}`
const upgrade = ['Connection: upgrade', 'Upgrade: h2c']
const twice2 = '2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n'
const ten = '\r\n0123456789\r\n0\r\n\r\n'
const uuid = '2ad731e3-4dcd-4f70-b871-0ad284b29ffc'

/**
 * The responses of which llhttp 9.4.2's own tests consist (test/response), under the names that they have there, written
 * again in our way; where bytes repeat another case's, they stand once.
 */
export const llhttpResponses: readonly [name: string, text: string][] = [
  ['Proxy-Connection', head(ok, length(11), 'Proxy-Connection: close') + 'hello world'],
  ['HTTP/1.0, keep-alive, until the end', head(ok10, 'Connection: keep-alive') + head(ok10)],
  ['HTTP/1.0, keep-alive, 204', head('HTTP/1.0 204 No content', 'Connection: keep-alive') + head(ok10)],
  ['until the end', head(ok) + head(ok)],
  ['204 and another one', head(noContent) + head(ok)],
  ['204 and close', head(noContent, 'Connection: close') + head(ok)],
  ['more than the length, and close', head(ok, length(5), 'Connection: close') + uuid],
  ['101 with a length', head('HTTP/1.1 101 Switching Protocols', ...upgrade, length(4)) + 'bodyproto'],
  ['101 with chunks', head('HTTP/1.1 101 Switching Protocols', ...upgrade, chunked) + `${twice2}proto`],
  ['200 with Upgrade', head(ok, ...upgrade) + 'body'],
  ['200 with Upgrade and a length', head(ok, ...upgrade, length(4)) + 'body'],
  ['200 with Upgrade and chunks', head(ok, ...upgrade, chunked) + twice2],
  ['304 with a length', head('HTTP/1.1 304 Not Modified', length(10)) + head(ok, length(5)) + 'hello'],
  [
    '304 with chunks',
    head('HTTP/1.1 304 Not Modified', chunked) + head(ok, chunked) + '5\r\nhello\r\n0\r\n\r\n',
  ],
  [
    '100 first, then 404',
    head('HTTP/1.1 100 Continue') + head('HTTP/1.1 404 Not Found', length(14)) + '404: Not Found',
  ],
  [
    '103 first, then 200',
    head('HTTP/1.1 103 Early Hints', 'Link: </styles.css>; rel=preload; as=style') +
      head(ok, 'Connection: keep-alive', 'Keep-Alive: timeout=5', length(16)) +
      'response content',
  ],
  ['no length, but a body', head(ok, 'Connection: close') + '<?xml version="1.0"?>\n<a>\n</a>'],
  ['Content-Length-X', head(ok, 'Content-Length-X: 0', chunked) + '2\r\nOK\r\n0\r\n\r\n'],
  ['a length without the body', head(ok, length(123)) + head(ok, length(456))],
  ['tabs around a length', head(ok, 'Content-Length:\t2\t') + 'ok'],
  ['an empty response', head(ok)],
  ['HTP', head('HTP/1.1 200 OK')],
  ['HTTP/01.1', head('HTTP/01.1 200 OK')],
  ['HTTP/11.1', head('HTTP/11.1 200 OK')],
  ['HTTP/1.01', head('HTTP/1.01 200 OK')],
  ['a tab behind the version', head('HTTP/1.1\t200 OK')],
  ['a CR before it, and a tab', `\r${head('HTTP/1.1\t200 OK')}`],
  ['fields separated by CR', head(ok, 'Foo: 1\rBar: 2', length(0))],
  ['a bare CR behind the status line', head(`${ok}\r${length(0)}`)],
  ['two bare CRs behind the status line', head(`${ok}\r\r${length(4)}`) + 'Evil'],
  ['HTTP/5.6', head('HTTP/5.6 200 OK')],
  ['a space before the first field', head(ok, ' Host: foo')],
  ['two spaces before the status', head('HTTP/1.1  200 OK')],
  ['two spaces before the reason', head('HTTP/1.1 200  OK')],
  ['a status of one digit', head('HTTP/1.1 2 OK')],
  ['only LFs, and no body', `${ok}\n${length(0)}\n\n`],
  ['only LFs', `${ok}\nFoo: abc\nBar: def\n\nBODY\n`],
  ['three bytes', head(ok, length(3)) + 'abc'],
  ['a chunk', `${head(ok, chunked)}a${ten}`],
  ['a chunk with an extension', `${head(ok, chunked)}a;foo=bar${ten}`],
  [
    'three responses at once',
    `${head(ok, length(3))}AAA${head('HTTP/1.1 201 Created', length(4))}BBBB` +
      `${head('HTTP/1.1 202 Accepted', length(5))}CCCC`,
  ],
  ['a simple one', head(ok, 'Header1: Value1', 'Header2:\t Value2', length(0))],
  ['RTSP', head('RTSP/1.1 200 OK')],
  ['ICE', head('ICE/1.1 200 OK')],
  ['HTTPER', head('HTTPER/1.1 200 OK')],
  [
    'a redirect with spaces around its length',
    head(
      'HTTP/1.1 301 Moved Permanently',
      'Location: http://www.google.com/',
      'X-$PrototypeBI-Version: 1.6.0.3',
      'Content-Length:  14  ',
    ) + '<HTML>\n</HTML>',
  ],
  [
    'a redirect with quotes and one byte',
    head('HTTP/1.1 301 MovedPermanently', 'p3p: policyref="http://x/w3c/p3p.xml",CP="CAO DSP "', chunked) +
      '1\r\n\n\r\n0\r\n\r\n',
  ],
  ['404 without fields', head('HTTP/1.1 404 Not Found')],
  ['no reason', head('HTTP/1.1 301')],
  ['an empty reason', head('HTTP/1.1 200 ')],
  ['no CR', `${ok}\nContent-Type: text/html\nConnection: close\n\nthese fields have none`],
  [
    'an underscore in a name',
    head(ok, length(0), 'DCLK_imp: v7;x;114750856;0-0;0;~okv=;dcmt=text/xml;;~cs=o'),
  ],
  [
    'HTTP/1.0 with an empty value',
    head('HTTP/1.0 301 Moved Permanently', 'Pragma: ', length(0), 'Connection: keep-alive'),
  ],
  [
    'names that begin oddly',
    head(ok, '.et-Cookie: a=1; path=/', '_onnection: Keep-Alive', chunked, 'Connection: close') + '0\r\n\r\n',
  ],
  ['a space in a name', head(ok, 'en-US Content-Type: text/xml', length(16)) + '<xml>hello</xml>'],
  [
    'bytes beyond ASCII in the reason',
    head('HTTP/1.1 500 Ori\xc3\xabntatieprobleem', length(0), 'Connection: close'),
  ],
  ['HTTP/0.9', head('HTTP/0.9 200 OK')],
  ['neither length nor coding', head(ok, 'Content-Type: text/plain') + 'hello world'],
  ['a CRLF before it', `\r\n${head(ok, 'Header1: Value1', length(0))}`],
  [
    'spaces behind a chunk size',
    `${head(ok, chunked)}25  \r\nThis is the data in the first chunk\r\n\r\n0  \r\n\r\n`,
  ],
  ['chunked before another coding', head(ok, 'Transfer-Encoding: chunked, deflate') + 'World'],
  ['chunked, and identity in another field', head(ok, chunked, 'Transfer-Encoding: identity') + 'World'],
  ['chunkedchunked', head(ok, 'Transfer-Encoding: chunkedchunked') + '2\r\nOK\r\n0\r\n\r\n'],
  [
    'chunk extensions',
    `${head(ok, chunked)}5;ilovew3;somuchlove=aretheseparametersfor\r\nhello\r\n6;blahblah;blah\r\n world\r\n0\r\n\r\n`,
  ],
  ['no semicolon before an extension', `${head(ok, chunked)}2 erfrferferf\r\naa\r\n0 rrrr\r\n\r\n`],
  ['no extension behind a semicolon', `${head(ok, chunked)}2;\r\naa\r\n0\r\n\r\n`],
  [
    'quotes in extensions',
    `${head(ok, chunked)}5;ilovew3="I love; extensions";blah;foo=bar\r\nhello\r\n6;blahblah;blah\r\n world\r\n0\r\n\r\n`,
  ],
  [
    'a quote that does not end',
    `${head(ok, chunked)}5;ilovew3="abc";somuchlove="def; ghi\r\nhello\r\n0\r\n\r\n`,
  ],
  ['a folded Transfer-Encoding', `${ok}\r\n${chunked}\r\n  abc\r\n\r\n5\r\nWorld\r\n0\r\n\r\n`],
  ['two lengths', head(ok, length(2), length(2)) + 'ok'],
  ['a length and chunks', head(ok, length(2), chunked) + '2\r\nok\r\n0\r\n\r\n'],
  ['a chunk that is longer than its size', `${head(ok, chunked)}2\r\nokay\r\n0\r\n\r\n`],
]
