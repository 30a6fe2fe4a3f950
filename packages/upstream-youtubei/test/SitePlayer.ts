/** A player's script with the two things that youtubei.js looks for in the site's: the function that makes links usable, and a timestamp. */

export const PLAYER_ID = "0a1b2c3d"
export const TIMESTAMP = 20_345

/** What the function does: a signature is turned round, and `n` is told in capitals. */
export const unlocked = (signature: string) => signature.split("").toReversed().join("")
export const ofN = (n: string) => n.toUpperCase()

const scriptWith = (body: string, timestamp = `${TIMESTAMP}`) => `var _yt_player={};(function(g){
var turn=function(a){return a.split("").reverse().join("")};
g.Link=class{
  constructor(url){this.url=url;this.values={};var query=url.split("?")[1]||"";
    query.split("&").forEach((pair)=>{var at=pair.indexOf("=");if(at>0)this.values[pair.slice(0,at)]=pair.slice(at+1)})}
  set(name,value){this.values[name]=value}
  get(name){return this.values[name]}
  clone(){return this}
  work(){${body}}
};
var unlock=function(url,name="",value=""){url=new g.Link(url,!0);url.set("alr","yes");name&&(value=turn(decodeURIComponent(value)),url.set(name,encodeURIComponent(value)));return url};
var config=function(){return {signatureTimestamp:${timestamp}}};
})(_yt_player);
`

export const BASE_JS = scriptWith(`var n=this.values.n;n&&(this.values.n=n.toUpperCase())`)

/** A script that runs for ever, one that wants out of its context, and one that takes all memory. */
export const ENDLESS = scriptWith("for(;;);")
export const ESCAPING = scriptWith(
  `var out="in";try{out=this.constructor.constructor("return typeof process")()}catch(e){out="refused"}` +
    `this.values.n=[out].concat(["process","require","fetch","Buffer","setTimeout"].map((name)=>typeof globalThis[name])).join("-")`
)
export const GREEDY = scriptWith("var all=[];for(;;)all.push(new Array(1e6).fill(1));")
/** Without what is looked for. */
export const CHANGED = `var _yt_player={};(function(g){var other=function(a){return a};})(_yt_player);`
