// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TestUsdc} from "../src/doubles/TestUsdc.sol";
import {TestWallet} from "../src/doubles/TestWallet.sol";
import {Vm, World} from "./World.sol";

/// The token of the local chain pays as USDC pays: same domain, same checks, same logs.
contract TestUsdcTest is World {
    uint256 private constant PRICE = 10_000;
    uint256 private constant HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;
    uint256 private constant ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
    bytes32 private constant NONCE = keccak256("nonce");

    TestUsdc private token = TestUsdc(0x036CbD53842c5426634e7929541eC2318f3dCF7e);
    address private payer = person("payer");
    address private seller = person("seller");

    struct Authorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }

    function setUp() public override {
        vm.warp(START);
        vm.etch(address(token), type(TestUsdc).runtimeCode);
        token.mint(payer, 1_000_000);
    }

    function test_isWholeAsBareCode() public {
        require(keccak256(bytes(token.name())) == keccak256("USDC"), "name");
        require(keccak256(bytes(token.version())) == keccak256("2"), "version");
        require(token.decimals() == 6 && token.totalSupply() == 1_000_000, "amounts");
        // As every x402 buyer computes it for Base Sepolia.
        vm.chainId(84532);
        require(
            token.DOMAIN_SEPARATOR() == 0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818, "domain"
        );
    }

    function test_keepsBalancesWhereTheRealOneDoes() public {
        vm.store(address(token), keccak256(abi.encode(seller, uint256(9))), bytes32(uint256(77)));
        require(token.balanceOf(seller) == 77, "slot 9");
    }

    function test_movesByAuthorizationInEitherForm() public {
        Authorization memory first = authorization(NONCE);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(keyOf[payer], digestOf(first));
        vm.recordLogs();
        vm.prank(stranger);
        token.transferWithAuthorization(payer, seller, PRICE, 0, START + 60, NONCE, v, r, s);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs.length == 2, "two logs");
        require(logs[0].topics[0] == keccak256("AuthorizationUsed(address,bytes32)"), "first the authorization");
        require(logs[0].topics[1] == bytes32(uint256(uint160(payer))) && logs[0].topics[2] == NONCE, "whose");
        require(logs[1].topics[0] == keccak256("Transfer(address,address,uint256)"), "then the transfer");
        require(logs[1].topics[2] == bytes32(uint256(uint160(seller))) && uint256(bytes32(logs[1].data)) == PRICE);

        Authorization memory second = authorization("second");
        send(second, signatureOf(payer, digestOf(second)));
        require(token.balanceOf(payer) == 1_000_000 - 2 * PRICE && token.balanceOf(seller) == 2 * PRICE, "paid twice");
        require(token.authorizationState(payer, NONCE) && token.authorizationState(payer, "second"), "used");
        require(!token.authorizationState(payer, "third"), "not used");
    }

    function test_movesForASmartAccount() public {
        TestWallet wallet = new TestWallet(payer);
        token.mint(address(wallet), PRICE);
        Authorization memory a = authorization(NONCE);
        a.from = address(wallet);
        refuses(a, signatureOf(stranger, digestOf(a)), "FiatTokenV2: invalid signature");
        send(a, signatureOf(payer, digestOf(a)));
        require(token.balanceOf(seller) == PRICE && token.balanceOf(address(wallet)) == 0, "paid");
    }

    function test_anAuthorizationServesOnce() public {
        Authorization memory a = authorization(NONCE);
        bytes memory signature = signatureOf(payer, digestOf(a));
        send(a, signature);
        refuses(a, signature, "FiatTokenV2: authorization is used or canceled");
        require(token.balanceOf(seller) == PRICE, "once");
    }

    function test_anAuthorizationHasItsTime() public {
        Authorization memory a = authorization(NONCE);
        a.validAfter = START;
        a.validBefore = START + 60;
        bytes memory signature = signatureOf(payer, digestOf(a));
        refuses(a, signature, "FiatTokenV2: authorization is not yet valid");
        vm.warp(START + 60);
        refuses(a, signature, "FiatTokenV2: authorization is expired");
        vm.warp(START + 59);
        send(a, signature);
    }

    /// Every field is signed: a change of any of them is refused.
    function testFuzz_everyFieldIsSigned(uint8 field, uint256 change) public {
        Authorization memory a = authorization(NONCE);
        bytes memory signature = signatureOf(payer, digestOf(a));
        field = field % 4;
        change = 1 + change % 1000;
        if (field == 0) a.to = address(uint160(a.to) ^ uint160(change));
        if (field == 1) a.value += change;
        if (field == 2) a.validBefore += change;
        if (field == 3) a.nonce = bytes32(uint256(a.nonce) ^ change);
        refuses(a, signature, "FiatTokenV2: invalid signature");
    }

    function test_refusesOddSignatures() public {
        Authorization memory a = authorization(NONCE);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(keyOf[payer], digestOf(a));
        require(uint256(s) <= HALF_ORDER, "low");
        bytes memory malleated = abi.encodePacked(r, ORDER - uint256(s), v == 27 ? uint8(28) : uint8(27));
        refuses(a, malleated, "ECRecover: invalid signature 's' value");
        refuses(a, abi.encodePacked(r, s), "ECRecover: invalid signature length");
        refuses(a, abi.encodePacked(r, s, uint8(0)), "ECRecover: invalid signature 'v' value");
        refuses(a, abi.encodePacked(bytes32(0), s, v), "ECRecover: invalid signature");
    }

    function test_refusesWhatIsNotThere() public {
        Authorization memory a = authorization(NONCE);
        a.value = 1_000_001;
        refuses(a, signatureOf(payer, digestOf(a)), "ERC20: transfer amount exceeds balance");
        a = authorization(NONCE);
        a.to = address(0);
        refuses(a, signatureOf(payer, digestOf(a)), "ERC20: transfer to the zero address");
        require(!token.authorizationState(payer, NONCE), "what is refused is not used");
    }

    function test_aPayerMayCancel() public {
        bytes32 digest = typed(keccak256(abi.encode(token.CANCEL_AUTHORIZATION_TYPEHASH(), payer, NONCE)));
        require(
            token.CANCEL_AUTHORIZATION_TYPEHASH() == 0x158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a1597429,
            "EIP-3009"
        );
        bytes memory signature = signatureOf(payer, digest);
        vm.recordLogs();
        token.cancelAuthorization(payer, NONCE, signature);
        require(vm.getRecordedLogs()[0].topics[0] == keccak256("AuthorizationCanceled(address,bytes32)"), "event");
        require(token.authorizationState(payer, NONCE), "the state alone does not say paid");
        Authorization memory a = authorization(NONCE);
        refuses(a, signatureOf(payer, digestOf(a)), "FiatTokenV2: authorization is used or canceled");
    }

    function test_onlyThePayeeReceives() public {
        require(
            token.RECEIVE_WITH_AUTHORIZATION_TYPEHASH()
                == 0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8,
            "EIP-3009"
        );
        bytes32 hash = keccak256(
            abi.encode(
                token.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(), payer, seller, PRICE, uint256(0), START + 60, NONCE
            )
        );
        bytes memory signature = signatureOf(payer, typed(hash));
        bytes memory call_ = abi.encodeWithSignature(
            "receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)",
            payer,
            seller,
            PRICE,
            0,
            START + 60,
            NONCE,
            signature
        );
        vm.prank(stranger);
        (bool success,) = address(token).call(call_);
        require(!success, "a stranger");
        vm.prank(seller);
        (success,) = address(token).call(call_);
        require(success && token.balanceOf(seller) == PRICE, "the payee");
    }

    function test_stopsWhilePaused() public {
        Authorization memory a = authorization(NONCE);
        bytes memory signature = signatureOf(payer, digestOf(a));
        token.pause();
        refuses(a, signature, "Pausable: paused");
        token.unpause();
        send(a, signature);
    }

    function test_isAPlainTokenToo() public {
        vm.prank(payer);
        token.transfer(seller, 5);
        vm.prank(payer);
        token.approve(stranger, 7);
        vm.prank(stranger);
        token.transferFrom(payer, seller, 7);
        require(token.balanceOf(seller) == 12 && token.allowance(payer, stranger) == 0, "moved");
        vm.prank(stranger);
        try token.transferFrom(payer, seller, 1) {
            revert("no allowance is left");
        } catch Error(string memory reason) {
            require(keccak256(bytes(reason)) == keccak256("ERC20: transfer amount exceeds allowance"), "reason");
        }
    }

    function authorization(bytes32 nonce) private view returns (Authorization memory) {
        return Authorization(payer, seller, PRICE, 0, START + 60, nonce);
    }

    /// Written out from EIP-3009, not taken from the contract.
    function digestOf(Authorization memory a) private view returns (bytes32) {
        bytes32 typeHash = keccak256(
            "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
        );
        return typed(keccak256(abi.encode(typeHash, a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce)));
    }

    function typed(bytes32 structHash) private view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), structHash));
    }

    function signatureOf(address signer, bytes32 digest) private view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(keyOf[signer], digest);
        return abi.encodePacked(r, s, v);
    }

    function send(Authorization memory a, bytes memory signature) private {
        token.transferWithAuthorization(a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature);
    }

    function refuses(Authorization memory a, bytes memory signature, string memory expected) private {
        try token.transferWithAuthorization(
            a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature
        ) {
            revert("the payment should have been refused");
        } catch Error(string memory reason) {
            require(keccak256(bytes(reason)) == keccak256(bytes(expected)), reason);
        }
    }
}
