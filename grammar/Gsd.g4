// The grammar of .gsd, whole: what later versions implement is parsed now, so that it can be answered by name.
// It sees no lines and no meaning. What it leaves to frontend/build_ast.cpp: the `(` of a call on the line of its callee,
// comparisons and ranges unchained, the shape of annotations, initialisers that must be there.
grammar Gsd;

file : decl* EOF ;

decl
  : importDecl
  | constDecl
  | meshDecl
  | fnDecl
  | modelDecl
  | optimizerDecl
  | letDecl
  | trainDecl
  | shardDecl
  ;

// ---- declarations

importDecl : IMPORT dottedName ;

constDecl : CONST name (COLON annotatedType)? ASSIGN expression ;

meshDecl : MESH LBRACK (meshAxis (COMMA meshAxis)* COMMA?)? RBRACK ;
meshAxis : name COLON expression ;

fnDecl
  : ENTRY? FN name generics? LPAREN parameters? RPAREN (ARROW annotatedType)? (MANUAL OVER name (COMMA name)*)? block
  ;
generics : LBRACK generic (COMMA generic)* COMMA? RBRACK ;
generic : ELLIPSIS name | name (COLON name)? ;
parameters : parameter (COMMA parameter)* COMMA? ;
parameter : name COLON annotatedType (ASSIGN expression)? ;

modelDecl : MODEL name LPAREN parameters? RPAREN memberBlock ;

optimizerDecl : OPTIMIZER name LPAREN parameters? RPAREN FOR LPAREN name COMMA name RPAREN block ;

trainDecl : TRAIN dottedName trainOptimizer+ trainOptions? ;
trainOptimizer : WITH dottedName LPAREN arguments? RPAREN (FOR pattern (COMMA pattern)*)? ;
trainOptions : LBRACE (trainOption (COMMA trainOption)* COMMA?)? RBRACE ;
trainOption : name COLON expression ;

shardDecl : SHARD pattern (COMMA pattern)* annotation+ ;
pattern : segment (DOT segment)* ;
segment : name | INT | FLOAT | STAR | POW ;         // `blocks.0.1` has a FLOAT in it: two segments

letDecl : LET letNames (COLON annotatedType)? ASSIGN expression ;
letNames : name | LPAREN name (COMMA name)* COMMA? RPAREN ;

// ---- model members and statements

memberBlock : LBRACE member* RBRACE ;
member : paramMember | stateDecl | letDecl | fnDecl | memberFor | memberIf ;
paramMember : PARAM name COLON annotatedType (ASSIGN expression)? ;
memberFor : FOR name IN expr memberBlock ;
memberIf : IF expr memberBlock (ELSE IF expr memberBlock)* (ELSE memberBlock)? ;

block : LBRACE statement* RBRACE ;
statement : letDecl | stateDecl | assignment | report | returnStatement | forStatement | loopStatement | ifStatement ;
stateDecl : STATE name (COLON annotatedType)? (ASSIGN expression)? ;
assignment : name ASSIGN expression ;
report : REPORT name ASSIGN expression ;
returnStatement : RETURN expression ;
forStatement : FOR name IN expr block ;
loopStatement : LOOP name IN expr block ;
ifStatement : IF expr block (ELSE IF expr block)* (ELSE block)? ;

// ---- types

annotatedType : type annotation* ;
type
  : name dims?
  | LPAREN annotatedType (COMMA annotatedType)* COMMA? RPAREN
  | LBRACK type RBRACK
  ;
dims : LBRACK (dim (COMMA dim)* COMMA?)? RBRACK ;
dim : ELLIPSIS name | expr ;

annotation : AT name (LPAREN arguments? RPAREN)? ;

// ---- expressions, tightest first

expression : expr annotation* ;

expr
  : primary
  | left=expr op=DOT name
  | left=expr op=LPAREN arguments? RPAREN
  | left=expr op=LBRACK indexItem (COMMA indexItem)* COMMA? RBRACK
  | <assoc=right> left=expr op=POW right=expr
  | op=MINUS right=expr
  | left=expr op=(STAR | SLASH | PERCENT) right=expr
  | left=expr op=(PLUS | MINUS) right=expr
  | left=expr op=(EQUAL | NOT_EQUAL | LESS | LESS_EQUAL | GREATER | GREATER_EQUAL) right=expr
  | op=NOT right=expr
  | left=expr op=AND right=expr
  | left=expr op=OR right=expr
  | left=expr op=RANGE right=expr
  ;

primary
  : name
  | INT
  | FLOAT
  | STRING
  | TRUE
  | FALSE
  | NONE
  | LPAREN expression (COMMA expression)* COMMA? RPAREN
  | LBRACK (expression (FOR name IN expression | (COMMA expression)* COMMA?))? RBRACK
  | IF expr LBRACE expression RBRACE (ELSE IF expr LBRACE expression RBRACE)* ELSE LBRACE expression RBRACE
  ;

arguments : argument (COMMA argument)* COMMA? ;
argument : (name COLON)? expression ;

indexItem : expr slice? | slice ;
slice : COLON high=expr? (COLON step=expr?)? ;

dottedName : name (DOT name)* ;

// Every keyword but the reserved ones is also a name.
name
  : ID | IMPORT | CONST | MESH | MODEL | OPTIMIZER | ENTRY | TRAIN | SHARD | PARAM | STATE | LOOP | REPORT | WITH | MANUAL
  | OVER
  ;

// ---- tokens

FN : 'fn' ;
LET : 'let' ;
RETURN : 'return' ;
FOR : 'for' ;
IN : 'in' ;
IF : 'if' ;
ELSE : 'else' ;
AND : 'and' ;
OR : 'or' ;
NOT : 'not' ;
TRUE : 'true' ;
FALSE : 'false' ;
NONE : 'none' ;

IMPORT : 'import' ;
CONST : 'const' ;
MESH : 'mesh' ;
MODEL : 'model' ;
OPTIMIZER : 'optimizer' ;
ENTRY : 'entry' ;
TRAIN : 'train' ;
SHARD : 'shard' ;
PARAM : 'param' ;
STATE : 'state' ;
LOOP : 'loop' ;
REPORT : 'report' ;
WITH : 'with' ;
MANUAL : 'manual' ;
OVER : 'over' ;

ARROW : '->' ;
ELLIPSIS : '...' ;
RANGE : '..' ;
DOT : '.' ;
POW : '**' ;
STAR : '*' ;
SLASH : '/' ;
PERCENT : '%' ;
PLUS : '+' ;
MINUS : '-' ;
EQUAL : '==' ;
NOT_EQUAL : '!=' ;
LESS_EQUAL : '<=' ;
LESS : '<' ;
GREATER_EQUAL : '>=' ;
GREATER : '>' ;
ASSIGN : '=' ;
LPAREN : '(' ;
RPAREN : ')' ;
LBRACK : '[' ;
RBRACK : ']' ;
LBRACE : '{' ;
RBRACE : '}' ;
COMMA : ',' ;
COLON : ':' ;
AT : '@' ;

FLOAT : DIGITS '.' DIGITS EXPONENT? | DIGITS EXPONENT ;
INT : DIGITS ;
ID : [A-Za-z_] [A-Za-z0-9_]* ;
STRING : '"' (~["\\\r\n] | '\\' ~[\r\n])* '"' ;
OPEN_STRING : '"' (~["\\\r\n] | '\\' ~[\r\n])* '\\'? ;

DOC_COMMENT : '///' (~[/\r\n] ~[\r\n]*)? -> channel(HIDDEN) ;
LINE_COMMENT : '//' ~[\r\n]* -> channel(HIDDEN) ;
BLOCK_COMMENT : '/*' .*? '*/' -> channel(HIDDEN) ;
OPEN_COMMENT : '/*' (~'*' | '*'+ ~[*/])* '*'* -> channel(HIDDEN) ;
SPACE : [ \t\r\n]+ -> skip ;
STRAY : . -> channel(HIDDEN) ;

fragment DIGITS : [0-9] ('_'? [0-9])* ;
fragment EXPONENT : [eE] [+-]? [0-9]+ ;
